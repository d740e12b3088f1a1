"""How often something may be done by whom, counted in tables of a fixed size. Pure.

Each allowance has three rows of counters per stretch of time, and each caller has one counter in each row, found
by a keyed hash; the least of the three counts. So memory has a bound whatever the number of callers, no counter can be
pushed out by others, and a collision only makes an allowance stricter. Not here: where the tables of several processes
are (`apps.api.allowances`).
"""

from __future__ import annotations

import hashlib
import math
import struct
import threading
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

WIDTH = 16_384
ROWS = 3
_WORDS = struct.Struct(f">{ROWS}I")
MOST = 65_535
"""What a counter holds; it stays there when more is added."""


@dataclass(frozen=True)
class Allowance:
    """`amount` within `seconds`, measured over a stretch that moves with time."""

    name: str
    amount: int
    seconds: int


@dataclass(frozen=True)
class Taking:
    """One use of an allowance. A cost of 0 only looks, one below 0 gives back."""

    allowance: Allowance
    who: str
    cost: int = 1


@dataclass(frozen=True)
class Outcome:
    """`over` is the first allowance that would be exceeded, and then nothing was taken. `used` is what each of them had
    before."""

    over: Taking | None
    used: tuple[int, ...]

    def left(self, number: int, taking: Taking) -> int:
        """What is left of an allowance after this taking."""
        cost = 0 if self.over else taking.cost
        return max(0, taking.allowance.amount - self.used[number] - cost)


def stretch_of(allowance: Allowance, now: float) -> tuple[int, float]:
    """(number of the present stretch, share of the one before it that still counts)."""
    number, passed = divmod(now, allowance.seconds)
    return int(number), 1.0 - passed / allowance.seconds


def seconds_until_more(allowance: Allowance, now: float) -> int:
    """When it is worth trying again."""
    return max(1, math.ceil(allowance.seconds - now % allowance.seconds))


def cells_of(taking: Taking, secret: bytes) -> tuple[int, ...]:
    """Which counters are those of the caller. Without the secret it is unknown who shares them."""
    text = f"{taking.allowance.name}\n{taking.who}".encode(errors="surrogatepass")
    digest = hashlib.blake2b(text, key=secret[:64], digest_size=4 * ROWS).digest()
    return tuple(row * WIDTH + one % WIDTH for row, one in enumerate(_WORDS.unpack(digest)))


@dataclass
class _Pages:
    """The counters of one allowance: the present stretch and the one before."""

    number: int = -1
    present: array[int] = field(default_factory=lambda: _zeros())
    before: array[int] = field(default_factory=lambda: _zeros())

    def turn_to(self, number: int) -> None:
        if number == self.number:
            return
        self.before = self.present if number == self.number + 1 else _zeros()
        self.present, self.number = _zeros(), number


class Table:
    """All counters in this process's memory. Thread-safe."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._lock = threading.Lock()
        self._pages: dict[tuple[str, int], _Pages] = {}

    def take(self, takings: Sequence[Taking], now: float) -> Outcome:
        """Take from all of them, or from none where one would be exceeded."""
        with self._lock:
            found = [(taking, *self._look(taking, now)) for taking in takings]
            used = tuple(math.ceil(count) for _, _, _, count in found)
            for taking, _, _, count in found:
                if taking.cost > 0 and count + taking.cost > taking.allowance.amount:
                    return Outcome(taking, used)
            for taking, pages, cells, _ in found:
                for cell in cells:
                    pages.present[cell] = min(max(pages.present[cell] + taking.cost, 0), MOST)
            return Outcome(None, used)

    def _look(self, taking: Taking, now: float) -> tuple[_Pages, tuple[int, ...], float]:
        allowance = taking.allowance
        key = (allowance.name, allowance.seconds)
        if (pages := self._pages.get(key)) is None:
            pages = self._pages[key] = _Pages()
        number, share = stretch_of(allowance, now)
        pages.turn_to(number)
        cells = cells_of(taking, self._secret)
        count = min(pages.present[cell] for cell in cells) + share * min(pages.before[cell] for cell in cells)
        return pages, cells, count


def _zeros() -> array[int]:
    return array("H", bytes(2 * ROWS * WIDTH))
