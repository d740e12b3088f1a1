"""Lines that a script draws again and again, as a terminal shows them: progress bars.

`\\r` leads back to the line's beginning, `\\b` one character back, later text overwrites, and `ESC [K` erases. What is
kept of an open line is its latest state, however often it is drawn. Lines without any of these pass as they are, with a
few searches per chunk. Not here: lines that are too long (`lines`).
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import List, Tuple

MOST_REDRAWS = 16
"""Of one line at once: earlier states can hardly be seen under so many later ones."""
WIDEST = 4096
"""Bytes of one state. A wider one is no bar: it takes the place of what was there."""
LONGEST_SHOWN = 1000
MOST_COLOURED = 10_000
"""Characters with those of the colours: more of them are left out."""
_REDRAWN = re.compile(rb"(?m)^[^\n]*[\r\b][^\n]*$")
_TOKENS = re.compile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\b+|[^\b\x1b]+|\x1b")
_UNFINISHED = re.compile(rb"(?:\x1b(?:\[[0-9;?]{0,32})?|[\xc0-\xff][\x80-\xbf]{0,2})$")
_LONGEST_UNFINISHED = 40
"""The beginning of a character or colour whose rest comes with the next chunk."""
_RESET = ("\x1b[0m", "\x1b[m")


class Redraws:
    """A stage before the cutter of lines: what `feed` returns is whole lines, and the beginning of one where it is
    longer than `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = b""

    @property
    def open(self) -> bytes:
        """The line that is not finished; to be shown by `shown`."""
        return self._rest

    def feed(self, chunk: bytes) -> bytes:
        data = self._rest + chunk if self._rest else chunk
        end = data.rfind(b"\n") + 1
        whole, rest = data[:end], data[end:]
        if b"\r" in whole:
            whole = whole.replace(b"\r\n", b"\n")
        if _is_redrawn(whole):
            whole = _REDRAWN.sub(lambda found: settled(found.group()), whole)
        if _is_redrawn(rest):
            rest = compacted(rest)
        if len(rest) >= self._limit:
            whole, rest = whole + rest, b""
        self._rest = rest
        return whole

    def finish(self) -> bytes:
        """The last line, where the script ended without a newline."""
        rest, self._rest = self._rest, b""
        return settled(rest) if _is_redrawn(rest) else rest


def settled(line: bytes) -> bytes:
    """The line as it is left on a terminal."""
    states = _states(line)
    if _is_wide(states):
        return _last(states)
    cells, _, _ = _drawn(states)
    return _text(cells).rstrip().encode("utf-8", "surrogateescape")


def compacted(line: bytes) -> bytes:
    """A shorter line that is drawn the same, and so is whatever follows it."""
    unfinished = _UNFINISHED.search(line, max(0, len(line) - _LONGEST_UNFINISHED))
    held = unfinished.group() if unfinished else b""
    states = _states(line[: len(line) - len(held)])
    if _is_wide(states):
        return _last(states) + (b"" if states[-1] else b"\r") + held
    cells, at, style = _drawn(states)
    whole = "\r" + _text(cells)  # it stays a line that is redrawn
    if at < len(cells):
        whole += "\r" + _text(cells[:at])
    return (whole + style).encode("utf-8", "surrogateescape") + held


def shown(line: bytes) -> str:
    """An open line for people: its latest state, of bounded length."""
    states = _states(line)
    cells, _, _ = _drawn([_last(states)[:WIDEST]] if _is_wide(states) else states)
    cells = cells[:LONGEST_SHOWN]
    text = _text(cells).rstrip()
    if len(text) > MOST_COLOURED:
        text = "".join(one for one, _ in cells)
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text.rstrip("\ufffd")


def _is_redrawn(data: bytes) -> bool:
    return b"\r" in data or b"\b" in data


Cells = List[Tuple[str, str]]
"""Each character with the colours it has."""


def _states(line: bytes) -> List[bytes]:
    """What was drawn from the line's beginning on, time after time."""
    return line.rsplit(b"\r", MOST_REDRAWS)[-MOST_REDRAWS:]


def _is_wide(states: List[bytes]) -> bool:
    return max(map(len, states)) > WIDEST


def _last(states: List[bytes]) -> bytes:
    return next((one for one in reversed(states) if one), b"")


def _drawn(states: List[bytes]) -> Tuple[Cells, int, str]:
    """The cells, where the cursor is, and the colours that what follows would have."""
    cells: Cells = []
    at, style = 0, ""
    for state in states:
        at = 0
        for token in _TOKENS.findall(state.decode("utf-8", "surrogateescape")):
            if token[0] == "\b":
                at = max(0, at - len(token))
            elif token[0] != "\x1b":
                cells += [(" ", "")] * (at - len(cells))
                cells[at : at + len(token)] = [(one, style) for one in token]
                at += len(token)
            elif token.endswith("K"):
                cells = _erased(cells, at, token)
            elif token.endswith("m"):
                style = "" if token in _RESET else (style + token)[-64:]
    return cells, at, style


def _erased(cells: Cells, at: int, token: str) -> Cells:
    which = token[2:-1]
    if which == "2":
        return []
    if which == "1":
        return [(" ", "")] * min(at, len(cells)) + cells[at:]
    return cells[:at]


def _text(cells: Cells) -> str:
    pieces: List[str] = []
    before = ""
    for style, run in groupby(cells, key=lambda cell: cell[1]):
        if before:
            pieces.append(_RESET[0])
        pieces.append(style)
        pieces.extend(one for one, _ in run)
        before = style
    return "".join(pieces) + (_RESET[0] if before else "")
