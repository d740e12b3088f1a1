"""Takes the task's own token, and the values of its secrets, out of what its script prints: a log is read by more
people than may speak as the task.

Per chunk one search for each, and nothing is held back but what may be the beginning of one: that is shorter than what
is searched for and has no newline, so no whole line ever waits. Not here: what gives a secret away
(`secret_patterns`).
"""

from __future__ import annotations

from typing import Callable, Iterable, List, Sequence

from yardmaster_runner.secret_patterns import Pattern

MASK = b"[task token]"
SHORTEST = 16
"""Bytes. What is shorter is no token of the portal's, and taking it out would take out words."""


class TokenMask:
    """Masks a stream, however it is cut into chunks. `tokens` gives all that are known, and may give more later;
    `secrets` are the patterns of secrets, the longest first."""

    def __init__(self, tokens: Callable[[], Iterable[str]], secrets: Sequence[Pattern] = ()) -> None:
        self._tokens = tokens
        self._secrets = secrets
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """What is sure of the stream so far."""
        data, self._held = self._held + chunk if self._held else chunk, b""
        patterns = self._known()
        begun = _begun(data, patterns)
        if begun and _is_crossed(data, len(data) - begun, patterns):  # it is the end of another one, which is whole
            data = _masked(data, patterns)
            begun = _begun(data, patterns)
        if begun:
            data, self._held = data[:-begun], data[-begun:]
        return _masked(data, patterns)

    def finish(self) -> bytes:
        """What was held back: nothing longer came of it."""
        held, self._held = self._held, b""
        return _masked(held, self._known())

    def text(self, text: str) -> str:
        """A whole text, such as a message about a failure."""
        return _masked(text.encode("utf-8", "replace"), self._known()).decode("utf-8", "replace")

    def _known(self) -> List[Pattern]:
        found = [token.encode("utf-8", "replace") for token in self._tokens()]
        return [(token, MASK) for token in found if len(token) >= SHORTEST] + list(self._secrets)


def _masked(data: bytes, patterns: Sequence[Pattern]) -> bytes:
    for pattern, mask in patterns:
        if pattern in data:
            data = data.replace(pattern, mask)
    return data


def _begun(data: bytes, patterns: Sequence[Pattern]) -> int:
    """How many bytes of what is searched for the last line ends in; the most of any."""
    tail = data[data.rfind(b"\n") + 1 :]
    return max((_begun_at_the_end(tail, pattern) for pattern, _ in patterns), default=0) if tail else 0


def _is_crossed(data: bytes, place: int, patterns: Sequence[Pattern]) -> bool:
    """Whether one of them begins before this place and ends after it."""
    return any(
        data.find(pattern, max(0, place - len(pattern) + 1), place + len(pattern) - 1) >= 0 for pattern, _ in patterns
    )


def _begun_at_the_end(data: bytes, token: bytes) -> int:
    """How many bytes of a token `data` ends in; 0 for none."""
    at = data.find(token[:1], max(0, len(data) - len(token) + 1))
    while at >= 0:
        if token.startswith(data[at:]):
            return len(data) - at
        at = data.find(token[:1], at + 1)
    return 0
