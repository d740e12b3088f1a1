"""Work on many files side by side: a store answers slowly (a disk that flushes, a network), but many at once.

The work must not touch the database: connections belong to the thread that made them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

LANES = 8
_AHEAD = 2 * LANES
_BEAT = 5.0

T = TypeVar("T")
R = TypeVar("R")


def in_lanes(work: Callable[[T], R], items: Iterable[T], beat: Callable[[], None]) -> Iterator[R]:
    """`work(item)` of each item, in order, a few ahead of what was taken. `beat` is called now and then while waiting.

    What a piece of work raises is raised here; nothing is begun after that.
    """
    waiting: deque[Future[R]] = deque()
    lanes = ThreadPoolExecutor(LANES)
    try:
        for item in items:
            waiting.append(lanes.submit(work, item))
            if len(waiting) == _AHEAD:
                yield _result(waiting.popleft(), beat)
        while waiting:
            yield _result(waiting.popleft(), beat)
    finally:
        lanes.shutdown(cancel_futures=True)


def _result(future: Future[R], beat: Callable[[], None]) -> R:
    while True:
        try:
            return future.result(timeout=_BEAT)
        except TimeoutError:
            if future.done():  # the work's own
                raise
            beat()
