"""What this machine has: processors, memory, GPUs. Seen through the container it may be in. Nothing here is cached."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path

from yardmaster.job.spec import Resources

_UNLIMITED = 1 << 60
"""Control groups write "no limit" as a word or as a number near 2**63."""


def measure(cpus: float | None, memory: int | None, gpus: Sequence[str] | None) -> Resources:
    """All of it together; what the operator has set stands in place of what is found."""
    return Resources(
        cpu=processors() if cpus is None else float(cpus),
        memory=physical_memory() if memory is None else memory,
        gpus=len(find_gpus() if gpus is None else gpus),
    )


def processors() -> float:
    """Cores that this process may use: its affinity, and its control group's share where that is less."""
    mine = float(len(os.sched_getaffinity(0)))
    quota = _first_word("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        mine = min(mine, int(quota[0]) / int(quota[1]))
    return max(0.001, math.floor(mine * 1000) / 1000)


def physical_memory() -> int:
    """Bytes of memory: the machine's, or the control group's limit where that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [
        _first_word(path) for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
    ]
    return min([machine, *(int(limit) for limit in limits if limit.isdigit() and int(limit) < _UNLIMITED)])


def find_gpus(devices: Path = Path("/dev")) -> list[str]:
    """The numbers that CUDA gives to the NVIDIA GPUs whose device files are here: 0, 1, …

    Device files may have gaps (a container that was given only some); CUDA numbers those that are there.
    """
    try:
        found = [name for name in os.listdir(devices) if re.fullmatch(r"nvidia\d+", name)]
    except OSError:
        found = []
    return [str(number) for number in range(len(found))]


def _first_word(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
