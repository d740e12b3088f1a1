"""Calls one of our own functions on what a user supplied, in a process with limits of time and memory.

For libraries that parse: how long they take over a text cannot be known beforehand. Arguments and result are JSON. What
comes back was made from hostile input, so the caller checks it like any other. Not here: programs that report while
they run (`process`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any

from yardmaster.sandbox.process import BoundedProcess

log = logging.getLogger(__name__)

_ROOT = Path(__file__).resolve().parents[3]


class NoResult(Exception):
    """The function did not end within its limits. `is_busy`: it was not called, too many calls were running. `is_late`:
    its time was over before its processor time, as that of any call may be on a busy machine."""

    def __init__(self, function: str, *, is_busy: bool = False, is_late: bool = False) -> None:
        super().__init__(function)
        self.is_busy, self.is_late = is_busy, is_late


class Sandbox:
    """A function that is named `module:function` and imports at most the given third-party packages.

    At most `at_once` calls run at a time; `seconds` is processor time, and `memory` is bytes of address space.
    """

    def __init__(
        self,
        function: str,
        *,
        packages: Sequence[str] = (),
        at_once: int = 2,
        seconds: int = 2,
        memory: int = 512 << 20,
    ) -> None:
        self._function = function
        self._limits = {"function": function, "seconds": seconds, "memory": memory}
        self._program = BoundedProcess("yardmaster.sandbox.program", at_once=at_once, paths=_paths_of(packages))

    def call(self, *arguments: Any, wait: float = 6.0) -> Any:
        """The function's result. The process is killed after `wait` seconds. Raises `NoResult`."""
        task = json.dumps(self._limits | {"arguments": arguments}).encode()
        ended = self._program.run(task, seconds=wait)
        if ended is None or not ended.is_well:
            raise NoResult(self._function, is_busy=ended is None, is_late=ended is not None and ended.is_late)
        return json.loads(ended.output)


def _paths_of(packages: Sequence[str]) -> tuple[str, ...]:
    """Where these packages can be imported from, and the code of the portal."""
    found = [util.find_spec(name) for name in packages]
    locations = [spec.submodule_search_locations for spec in found if spec is not None]
    folders = [str(Path(place[0]).parent) for place in locations if place]
    return tuple(dict.fromkeys([str(_ROOT), *folders]))
