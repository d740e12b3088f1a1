"""What the kernel says of the processes below this one: who they are, what they use, and adopting those that escape.

Linux has /proc and child subreapers; elsewhere there are no descendants to see, and the process group must do.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from dataclasses import dataclass
from typing import Dict, List

IS_LINUX = sys.platform.startswith("linux")
PR_SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """One line of /proc. `cpu_seconds` includes children that it has reaped."""

    pid: int
    parent: int
    is_zombie: bool
    cpu_seconds: float
    memory: int


@dataclass(frozen=True)
class Usage:
    """What a task uses now (`memory`) and has used (`cpu_seconds`)."""

    cpu_seconds: float
    memory: int


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent dies, so that none can hide. False where it cannot be."""
    if not IS_LINUX:
        return False
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # missing in some small builds of Python

        return int(ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0
    return False


def descendants(root: int) -> List[Process]:
    """Every process below `root`, zombies too, parents before children."""
    by_parent: Dict[int, List[Process]] = {}
    for process in _all_processes():
        by_parent.setdefault(process.parent, []).append(process)
    found: List[Process] = []
    waiting = [root]
    while waiting:
        children = by_parent.get(waiting.pop(0), [])
        found.extend(children)
        waiting.extend(child.pid for child in children)
    return found


def usage_below(root: int) -> Usage:
    """What the descendants of `root` use, with what this process has reaped already. Pages that several of them share,
    as forked children do with their parent, count once where the kernel tells each one's share."""
    reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
    below = descendants(root)
    cpu = reaped.ru_utime + reaped.ru_stime + sum(one.cpu_seconds for one in below)
    living = [one for one in below if not one.is_zombie]
    # One alone shares with none that we count, and asking for its share would take the kernel longer.
    memory = sum(map(_share_of, living)) if len(living) > 1 else sum(one.memory for one in living)
    return Usage(cpu_seconds=round(cpu, 2), memory=memory)


def largest_reaped() -> int:
    """The most memory that any single process reaped so far had, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _share_of(process: Process) -> int:
    """Its memory, with of each shared page the part that is its own."""
    path = "/proc/%d/smaps_rollup" % process.pid
    # It may end while we look, or the kernel may not tell us of it.
    with contextlib.suppress(OSError, ValueError, IndexError), open(path, "rb") as file:
        shares = [line for line in file if line.startswith(b"Pss:")]
        return int(shares[0].split()[1]) * 1024
    return process.memory


def _all_processes() -> List[Process]:
    if not IS_LINUX:
        return []
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            # It may end while we look.
            with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/%s/stat" % name, "rb") as file:
                found.append(_parse(int(name), file.read()))
    return found


def _parse(pid: int, stat: bytes) -> Process:
    """proc(5): after the command's last `)` come state, parent and so on; field 3 is the first here."""
    fields = stat[stat.rindex(b")") + 2 :].split()
    return Process(
        pid=pid,
        parent=int(fields[1]),
        is_zombie=fields[0] in (b"Z", b"X"),
        cpu_seconds=sum(int(one) for one in fields[11:15]) / TICKS,
        memory=max(0, int(fields[21])) * PAGE,
    )
