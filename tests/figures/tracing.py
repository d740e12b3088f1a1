"""Follow a journey through the modules of the project, and count them.

The counting rule:

- A journey begins when its entry function is called (the view's own method, the engine's `submit`, the worker's task):
  what came before, as middleware and authentication, does not count. It ends with its last write (`journeys`).
- Only the modules of the journey's own layer count: of the portal those of `apps`, of an engine those of the package
  that its class is made of. The core, the storage and the runner are one step for who follows the portal.
- Not counted either: modules of models (`models`, or in a package of that name), and `apps.api`, which every address
  shares.
- The trace enters a module when one of its functions is called from another module (that of the nearest caller that
  counts), the first time that this function is. A second such call shows nothing new; a function that a caller of its
  own module calls is read on the same page. Functions in other threads count in the order in which they are called,
  with the callers of their own thread.
- The module count is the number of distinct modules that are entered. A return is an entry into a module that was
  entered before, with another one in between.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

from tests.figures.sources import source_roots

SHARED = "apps.api"


@dataclass(frozen=True)
class Call:
    """A function's call; the modules of its callers, the nearest first."""

    module: str
    code: CodeType
    callers: tuple[str, ...] = ()


def entered(calls: Iterable[Call], counts: Callable[[str], bool]) -> list[str]:
    """The modules in the order in which the trace enters them, by the rule above. No two neighbours are the same."""
    known: set[int] = set()  # by identity: code that looks the same in two files is equal
    order: list[str] = []
    for call in calls:
        nearest = next((one for one in call.callers if counts(one)), None)
        if id(call.code) in known or not counts(call.module) or nearest == call.module:
            continue
        known.add(id(call.code))
        if not order or order[-1] != call.module:
            order.append(call.module)
    return order


def distinct(order: Sequence[str]) -> list[str]:
    """In the order first entered."""
    return list(dict.fromkeys(order))


def returns(order: Sequence[str]) -> int:
    """How often the trace enters a module that it had left in favour of another."""
    steps = [one for before, one in pairwise(["", *order]) if one != before]
    return len(steps) - len(set(steps))


def in_portal(module: str) -> bool:
    """Whether a module counts in a journey through the portal."""
    parts = module.split(".")
    return parts[0] == "apps" and ".".join(parts[:2]) != SHARED and "models" not in parts


def in_package(package: str) -> Callable[[str], bool]:
    return lambda module: module == package or module.startswith(f"{package}.")


@dataclass
class Trace:
    """Notes the project's calls from the first call of `entry` until that returns. `returned` is called with the name
    of the module and the result of each function of the project."""

    entry: CodeType
    returned: Callable[[str, Any], None] = lambda module, value: None
    calls: list[Call] = field(default_factory=list)
    _begun: FrameType | None = None
    _done: bool = False

    def follow(self, action: Callable[[], Any]) -> Any:
        """What the action returns. Raises `LookupError` where it never calls the entry."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            result = action()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
        if self._begun is None:
            raise LookupError(f"{self.entry.co_qualname} was not called")
        return result

    def _note(self, frame: FrameType, event: str, value: Any) -> None:
        if event == "call" and self._begun is None and frame.f_code is self.entry:
            self._begun = frame
        if self._begun is None or self._done or not _is_ours(frame):
            return
        if event == "call":
            self.calls.append(Call(_module(frame), frame.f_code, _callers(frame)))
        elif event == "return":
            self.returned(_module(frame), value)
            self._done = frame is self._begun


_FOLDERS = tuple(f"{folder}/" for folder in source_roots().values())


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_FOLDERS)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _callers(frame: FrameType) -> tuple[str, ...]:
    found: list[str] = []
    above = frame.f_back
    while above is not None:
        if _is_ours(above):
            found.append(_module(above))
        above = above.f_back
    return tuple(found)
