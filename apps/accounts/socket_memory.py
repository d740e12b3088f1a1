"""Memory that WebSockets hold: messages that are not complete, and those that the other side does not take; and the
time that it takes to parse them.

Bounded for each user and for the process, not for each socket: one socket may pass a long message, and all of them
together may not hold one each. Not here: what of a socket is counted (`portal.bounded_sockets`,
`apps.workbench.proxy.socket_upstream`).
"""

from __future__ import annotations

import uuid
from weakref import WeakValueDictionary

OF_PROCESS = 256 << 20
OF_USER = 64 << 20
FREE = 64 << 10
"""Bytes that any socket may hold, whatever others hold: short messages pass always."""
OF_FRAGMENT = 64
"""Bytes that a piece of a message takes, with nothing in it."""
MOST_FRAGMENTS = 16_384
"""Pieces of one message."""
LONGEST_SESSION_MESSAGE = 16 << 20
"""In either direction between a browser and a session of the workbench: cells with pictures in them, and files."""
TOO_BIG = 1009
_COSTLY = 0.002
"""Seconds that a piece may take to parse. What takes more is followed by a rest that is `_REST` times as long."""
_REST = 5.0
BELONGS = "yardmaster.belongs_to"
"""An extension of ASGI: its `user` says whose socket it is, once that is known."""


class TooMuch(Exception):
    """The socket must end, with the code `TOO_BIG`."""


def rest_after(spent: float) -> float:
    """Seconds in which nothing more is parsed of one whose last piece took so many."""
    return spent * _REST if spent > _COSTLY else 0.0


class Account:
    """What all sockets of one user hold."""

    def __init__(self) -> None:
        self.held = 0


class Held:
    """What one socket holds, or one side of it."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._counted = 0

    def set(self, size: int) -> None:
        """It is so much now. Raises TooMuch; what was counted stays counted then."""
        global _in_all
        more = max(0, size - FREE) - self._counted
        if more > 0 and self._account.held + more > OF_USER:
            raise TooMuch(f"WebSockets of a user hold at most {OF_USER >> 20} MiB of unread messages.")
        if more > 0 and _in_all + more > OF_PROCESS:
            raise TooMuch(f"All WebSockets hold at most {OF_PROCESS >> 20} MiB of unread messages.")
        self._counted += more
        self._account.held += more
        _in_all += more

    def leave(self) -> None:
        """It is over, and holds nothing."""
        self.set(0)


_in_all = 0
_of_user: WeakValueDictionary[uuid.UUID, Account] = WeakValueDictionary()


def account_of(user_id: uuid.UUID) -> Account:
    """That of the user in this process."""
    return _of_user.setdefault(user_id, Account())
