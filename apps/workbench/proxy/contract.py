"""Who may pass, as the proxy asks it: what it is told, and how it is refused. Not here: who may, which tables say."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from yardmaster.engines.base import Address


class Notice(NamedTuple):
    """What a page of the session says of the session itself."""

    message: str
    link: str
    link_text: str


@dataclass(frozen=True)
class Admitted:
    """A caller who may pass to the program of a session that runs."""

    session_id: uuid.UUID
    user_id: uuid.UUID
    address: Address
    """Of the gate."""
    key: str
    """What proves to the gate that it is the portal."""
    caller: Mapping[str, Any]
    """What `still_signed_in` reads of a scope: `user` and `session`."""
    is_use: Callable[[str, str], bool] = lambda method, path: True
    """Whether a request of this method for this path shows that the session is used. WebSockets do not."""
    notice: Notice | None = None


@dataclass(frozen=True)
class Entered:
    """What a browser gets for a ticket."""

    cookie: str
    """The cookie's value."""
    preferences: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the session's page finds in the browser's local storage, a JSON object for each key: what is there already
    stays."""


class Refusal(Exception):
    """Why a request does not pass, for people and programs. `link` is where the remedy is, `link_text` what it says."""

    def __init__(
        self, status: int, code: str, title: str, message: str, remedy: str = "", link: str = "", link_text: str = ""
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.title, self.message = status, code, title, message
        self.remedy, self.link, self.link_text = remedy, link, link_text


class Unknown(Refusal):
    """Whether a request may pass could not be found out: another one may be asked about later. Ends nothing that is
    under way."""


Admit = Callable[[uuid.UUID, str, Callable[[], str]], Awaitable[Admitted]]
"""The session, the cookie's value, and what says from which address it came. A `Refusal` of the status 401 sends people
to the portal for a new cookie."""
Enter = Callable[[uuid.UUID, str, Sequence[str]], Awaitable[Entered]]
"""The session, a ticket, and the digests of what the browser is known by: the ticket is for one of them."""
Used = Callable[[uuid.UUID], None]
"""The session was used just now. Called at each request that counts, in the event loop: it must not wait."""
Lost = Callable[[uuid.UUID], None]
"""The session did not answer where it was expected. Called as `Used` is."""
