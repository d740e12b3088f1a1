"""Memory limit and processor share of a task by the kernel itself, where this machine delegates control groups (v2).

Where it does not, `watch` looks after the memory, and the processor share is only what the environment asks of the
libraries. The portal's own processes are never moved: a group is used that is writable and already hands memory and
cpu on to its children (systemd: `Delegate=yes`), or the one that the operator names.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from yardmaster.job.spec import Resources

_PERIOD = 100_000
_NEEDED = frozenset({"memory", "cpu"})


def find_delegated() -> Path | None:
    """This process's own group, if tasks can be given groups under it."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return None
    inside = next((line[3:] for line in lines if line.startswith("0::")), None)
    mount = next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)
    if inside is None or mount is None:
        return None
    group = Path(mount) / inside.lstrip("/")
    return group if can_hold_tasks(group) else None


def can_hold_tasks(group: Path) -> bool:
    """Whether children of this group can be made and limited."""
    try:
        controllers = (group / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False
    return set(controllers) >= _NEEDED and os.access(group, os.W_OK)


class ControlGroup:
    """The group of one task, under `parent`."""

    def __init__(self, parent: Path, name: str) -> None:
        self.path = parent / name

    def make(self, resources: Resources) -> None:
        """Create it with these limits. Already there: success, and the limits are set again. Raises `OSError`."""
        self.path.mkdir(exist_ok=True)
        (self.path / "memory.max").write_text(str(resources.memory))
        (self.path / "cpu.max").write_text(f"{max(1000, round(resources.cpu * _PERIOD))} {_PERIOD}")
        with contextlib.suppress(OSError):  # no swap accounting in this kernel
            (self.path / "memory.swap.max").write_text("0")

    def out_of_memory_kills(self) -> int:
        """How many of its processes the kernel has killed for memory."""
        return self._number("memory.events", "oom_kill")

    def peak(self) -> int:
        """The most memory it ever used, in bytes; 0 where the kernel does not say."""
        return self._number("memory.peak", "")

    def kill(self) -> None:
        """SIGKILL to all in it at once, also to those that fork meanwhile."""
        with contextlib.suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """Gone, or still busy: then the next call removes it."""
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def _number(self, file: str, word: str) -> int:
        try:
            rows = [line.split() for line in (self.path / file).read_text().splitlines()]
        except OSError:
            return 0
        return next((int(row[-1]) for row in rows if row[:-1] == ([word] if word else [])), 0)
