"""Which byte strings give a secret away in a log: its lines as they are, and in the encodings in which programs print
them. Pure.

What a script prints in another form (in pieces, backwards, encrypted) is not recognized, and cannot be. Not here:
taking them out of a stream (`masking`).
"""

from __future__ import annotations

import base64
import json
import urllib.parse
from typing import Iterator, List, Sequence, Set, Tuple

from yardmaster_runner.order import Secret

SHORTEST = 8
"""Bytes. What is shorter would take out words."""
LONGEST = 512
"""Bytes of one pattern; longer ones are several."""
COLUMNS = 76
"""Characters in a line of Base64 as programs wrap it."""
MOST = 400
"""Each costs about half a millisecond per MiB of output."""

Pattern = Tuple[bytes, bytes]
"""What to look for, and what stands in its place."""


def patterns_of(secrets: Sequence[Secret]) -> Tuple[List[Pattern], List[str]]:
    """The patterns, the longest first, and the names of secrets that are not masked in all of their forms: what is in
    their lines comes before what is encoded."""
    found: List[Pattern] = []
    seen: Set[bytes] = set()
    partly: List[str] = []
    for forms in (_plain, _encoded):
        for one in sorted(secrets, key=lambda one: len(one.value)):
            mask = ("[secret %s]" % one.name).encode()
            for pattern in forms(one.value):
                if len(pattern) < SHORTEST or pattern in seen:
                    continue
                if len(found) >= MOST:
                    partly += [one.name] if one.name not in partly else []
                    break
                seen.add(pattern)
                found.append((pattern, mask))
    return sorted(found, key=lambda pair: -len(pair[0])), partly


def is_too_short(secret: Secret) -> bool:
    """Whether nothing of it can be masked."""
    return all(len(line) < SHORTEST for line in _lines(secret.value.encode("utf-8")))


def _plain(value: str) -> Iterator[bytes]:
    for line in _lines(value.encode("utf-8")):
        yield from _pieces(line, LONGEST)


def _encoded(value: str) -> Iterator[bytes]:
    """As Python shows it, as JSON, in an address, in Base64 at each of the three places where it can begin."""
    for text in (repr(value)[1:-1], json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield from _pieces(text.encode("utf-8"), LONGEST)
    for text in (urllib.parse.quote(value, safe=""), urllib.parse.quote(value), urllib.parse.quote_plus(value)):
        yield from _pieces(text.encode("utf-8"), LONGEST)
    for content in {value.encode("utf-8"), value.strip().encode("utf-8")}:
        if len(content) < SHORTEST:
            continue
        for before in range(3):
            text_64 = _base64_of(content, before)
            for one in {text_64, text_64.translate(_URL_SAFE)}:
                yield from _pieces(one, COLUMNS if before == 0 else LONGEST)


_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def _base64_of(content: bytes, before: int) -> bytes:
    """The characters that this content alone decides, with so many bytes (modulo 3) before it."""
    whole = base64.b64encode(b"\0" * before + content)
    return whole[(before * 8 + 5) // 6 : (before + len(content)) * 8 // 6]


def _lines(content: bytes) -> List[bytes]:
    return [line.strip() for line in content.splitlines()]


def _pieces(text: bytes, length: int) -> Iterator[bytes]:
    """Cut into patterns, none of them too short to be masked."""
    while len(text) > length:
        cut = length if len(text) - length >= SHORTEST else length - SHORTEST
        yield text[:cut]
        text = text[cut:]
    yield text
