"""How many requests and WebSockets are under way, of a user and to a session: one must not take all that there are."""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from collections.abc import Iterator

from apps.workbench.proxy.admission import Refusal

OF_SESSION = 200


class Limits:
    """Those of one process."""

    def __init__(self, of_user: int, of_session: int = OF_SESSION) -> None:
        self._of_user, self._of_session = of_user, of_session
        self._open: Counter[uuid.UUID] = Counter()

    @contextlib.contextmanager
    def hold(self, user_id: uuid.UUID, session_id: uuid.UUID) -> Iterator[None]:
        """Count one more while the block runs.

        Raises:
            Refusal: 429.
        """
        if self._open[user_id] >= self._of_user:
            raise _too_many(f"You have {self._of_user} requests and connections to sessions open, the most at a time.")
        if self._open[session_id] >= self._of_session:
            raise _too_many(f"The session has {self._of_session} requests and connections open, the most at a time.")
        self._open.update((user_id, session_id))
        try:
            yield
        finally:
            for one in (user_id, session_id):
                self._open[one] -= 1
                if not self._open[one]:
                    del self._open[one]


def _too_many(message: str) -> Refusal:
    remedy = "Close pages of sessions that you do not need, and try again."
    return Refusal(429, "too_many_at_once", "Too many connections", message, remedy)
