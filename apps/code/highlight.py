"""Source text as lines of HTML with classes for colours. Bounded; what has no grammar stays plain.

A sandboxed process says which stretch of the text is what (`lexing`); the HTML is made here, of the text alone. Not
here: the colours (`frontend/src/code.css` has one rule per class, for light and dark).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from hashlib import sha256

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from apps.code.lexing import CLASSES, grammar_of
from yardmaster.sandbox.function import NoResult, Sandbox

LONGEST = 256 << 10
"""Characters up to which a text is coloured: about half a second's work."""
LONGEST_LINE = 5_000
"""Beyond this a line is data and not source; grammars can take very long over it."""
_LEXER = Sandbox("apps.code.lexing:runs_of", packages=["pygments"])
_REMEMBERED = 200_000
"""Stretches that are kept, of all texts: turning the pages of a file starts no process for each."""

Runs = Sequence[tuple[int, int]]


def highlight(path: str, text: str) -> list[SafeString]:
    """One piece of HTML per line of the text, without line ends. The text of all of them is the text, unchanged."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    grammar = grammar_of(path)
    if not grammar or not text.strip() or len(text) > LONGEST or any(len(line) > LONGEST_LINE for line in lines):
        return [_safe(escape(line)) for line in lines]
    return list(coloured(text, _KNOWN.runs_of(grammar, text)))[: len(lines)]


def coloured(text: str, runs: Runs) -> Iterator[SafeString]:
    """The lines of the text, and an empty one after a last line end. Runs that are not those of the text do not
    count."""
    if sum(length for _, length in runs) != len(text) or any(length < 0 for _, length in runs):
        runs = [(-1, len(text))]
    line: list[str] = []
    at = 0
    for place, length in runs:
        before, *others = text[at : at + length].split("\n")
        at += length
        line.append(_marked(place, before))
        for other in others:
            yield _safe("".join(line))
            line = [_marked(place, other)]
    yield _safe("".join(line))


class _Known:
    """The stretches of texts that were read lately; none for a text that is too hard to read, which is read once. One
    for which the machine was too busy is read again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[bytes, Runs] = OrderedDict()
        self._size = 0

    def runs_of(self, grammar: str, text: str) -> Runs:
        key = sha256(f"{grammar}\n{text}".encode(errors="surrogatepass")).digest()
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
                return self._runs[key]
        try:
            runs: Runs = tuple((int(place), int(length)) for place, length in _LEXER.call(grammar, text))
        except NoResult as error:
            if error.is_busy or error.is_late:
                return ()
            runs = ()
        self._keep(key, runs)
        return runs

    def _keep(self, key: bytes, runs: Runs) -> None:
        with self._lock:
            self._size += 1 + len(runs) - (1 + len(self._runs[key]) if key in self._runs else 0)
            self._runs[key] = runs
            while self._size > _REMEMBERED and len(self._runs) > 1:
                self._size -= 1 + len(self._runs.popitem(last=False)[1])


_KNOWN = _Known()


def _marked(place: int, piece: str) -> str:
    if not piece or piece.isspace():
        return piece
    name = CLASSES[place][1] if 0 <= place < len(CLASSES) else ""
    return f'<span class="{name}">{escape(piece)}</span>' if name else str(escape(piece))


def _safe(html: str) -> SafeString:
    return mark_safe(html)  # every piece of text in it has been escaped
