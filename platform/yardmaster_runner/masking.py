"""Takes the task's own token out of what its script prints: a log is read by more people than may speak as the task.

Per chunk one search, and nothing is held back but what may be the beginning of a token: that is shorter than a token
and has no newline, so no whole line ever waits.
"""

from __future__ import annotations

from typing import Callable, Iterable, List

MASK = b"[task token]"
SHORTEST = 16
"""Bytes. What is shorter is no token of the portal's, and taking it out would take out words."""


class TokenMask:
    """Masks a stream, however it is cut into chunks. `tokens` gives all that are known, and may give more later."""

    def __init__(self, tokens: Callable[[], Iterable[str]]) -> None:
        self._tokens = tokens
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """What is sure of the stream so far."""
        data, self._held = self._held + chunk if self._held else chunk, b""
        tokens = self._known()
        for token in tokens:
            if token in data:
                data = data.replace(token, MASK)
        begun = max((_begun_at_the_end(data, token) for token in tokens), default=0)
        if begun:
            data, self._held = data[:-begun], data[-begun:]
        return data

    def finish(self) -> bytes:
        """What was held back: no token came of it."""
        held, self._held = self._held, b""
        return held

    def _known(self) -> List[bytes]:
        found = [token.encode("utf-8", "replace") for token in self._tokens()]
        return [token for token in found if len(token) >= SHORTEST]


def _begun_at_the_end(data: bytes, token: bytes) -> int:
    """How many bytes of a token `data` ends in; 0 for none."""
    at = data.find(token[:1], max(0, len(data) - len(token) + 1))
    while at >= 0:
        if token.startswith(data[at:]):
            return len(data) - at
        at = data.find(token[:1], at + 1)
    return 0
