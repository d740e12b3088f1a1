"""SHA-256 (FIPS 180-4) whose state is text, so that another request continues where one ended.
`hashlib` gives none away.

For little data, such as the checksums of a file's parts: in pure Python a block of 64 bytes costs some 50 us.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import count, islice

_BLOCK = 64
_MASK = 0xFFFFFFFF
_WORDS = struct.Struct(">8I")


def _root(number: int, power: int) -> int:
    """The first 32 bits of the fraction of this root of a number."""
    wanted, found = number << 32 * power, 0
    for bit in reversed(range(40)):
        if (found | 1 << bit) ** power <= wanted:
            found |= 1 << bit
    return found & _MASK


_PRIMES = tuple(islice((n for n in count(2) if all(n % d for d in range(2, n))), 64))
_START = _WORDS.pack(*(_root(one, 2) for one in _PRIMES[:8]))
_ROUNDS = tuple(_root(one, 3) for one in _PRIMES)


@dataclass(frozen=True)
class Sha256State:
    """Of `size` bytes: the words of the whole blocks among them, and what follows these."""

    size: int = 0
    words: bytes = _START
    rest: bytes = b""

    def updated(self, data: bytes) -> Sha256State:
        """The state behind these bytes too."""
        words, rest = self.words, self.rest + data
        while len(rest) >= _BLOCK:
            words, rest = _compressed(words, rest[:_BLOCK]), rest[_BLOCK:]
        return Sha256State(self.size + len(data), words, rest)

    def hexdigest(self) -> str:
        """Of all bytes so far."""
        padding = b"\x80" + bytes((_BLOCK - 9 - self.size) % _BLOCK) + struct.pack(">Q", 8 * self.size)
        return self.updated(padding).words.hex()


def _compressed(words: bytes, block: bytes) -> bytes:
    w = list(struct.unpack(">16I", block))
    for n in range(16, 64):
        small0 = _turned(w[n - 15], 7) ^ _turned(w[n - 15], 18) ^ w[n - 15] >> 3
        small1 = _turned(w[n - 2], 17) ^ _turned(w[n - 2], 19) ^ w[n - 2] >> 10
        w.append(w[n - 16] + small0 + w[n - 7] + small1 & _MASK)
    before = _WORDS.unpack(words)
    a, b, c, d, e, f, g, h = before
    for constant, word in zip(_ROUNDS, w, strict=True):
        first = h + (_turned(e, 6) ^ _turned(e, 11) ^ _turned(e, 25)) + (e & f ^ ~e & g) + constant + word
        second = (_turned(a, 2) ^ _turned(a, 13) ^ _turned(a, 22)) + (a & b ^ a & c ^ b & c)
        a, b, c, d, e, f, g, h = first + second & _MASK, a, b, c, d + first & _MASK, e, f, g
    after = (a, b, c, d, e, f, g, h)
    return _WORDS.pack(*(one + other & _MASK for one, other in zip(before, after, strict=True)))


def _turned(word: int, by: int) -> int:
    return (word >> by | word << 32 - by) & _MASK
