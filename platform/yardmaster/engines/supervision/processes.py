"""What the kernel says about processes, read from /proc: who is alive, whose child, how big. Linux only.

A process is known by pid, start time and boot together, because a pid alone comes round again and then belongs to
another process. Not here: which process is which task (`task`), and anything that starts one (`launch`).
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
MARK = b"YARDMASTER_WORK_DIR="
_DEAD = frozenset("ZXx")


@functools.cache
def boot_id() -> str:
    """The kernel's name for this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True)
class ProcessId:
    """One process for ever: equal only to itself, also after its pid was used again."""

    pid: int
    started: int
    """Clock ticks between boot and its start."""
    boot: str

    def is_alive(self) -> bool:
        """Whether it still runs. A zombie does not."""
        row = _row(self.pid)
        return row is not None and row.started == self.started and row.is_alive and self.boot == boot_id()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; nothing happens where it is gone."""
        if self.is_alive():
            send_signal(self.pid, number)


@dataclass(frozen=True)
class Row:
    """One line of the process table."""

    pid: int
    parent: int
    session: int
    started: int
    state: str
    resident: int
    """Bytes of memory in use, shared pages counted in full."""
    mark: bytes = b""
    """Its task's work folder, which the environment of all processes of a task names; empty where not looked for."""

    @property
    def is_alive(self) -> bool:
        return self.state not in _DEAD


def send_signal(pid: int, number: signal.Signals) -> None:
    """`os.kill` for which an absent process is success."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def identify(pid: int) -> ProcessId | None:
    """Who has this pid now."""
    row = _row(pid)
    return None if row is None else ProcessId(pid, row.started, boot_id())


def table(*, with_marks: bool = True) -> dict[int, Row]:
    """Every process of the machine by pid, zombies included. Without the marks it takes half the time."""
    rows = (_row(int(name)) for name in os.listdir("/proc") if name.isdigit())
    found = {row.pid: row for row in rows if row is not None}
    return {pid: replace(row, mark=_mark(pid)) for pid, row in found.items()} if with_marks else found


def members(rows: Mapping[int, Row], leader: ProcessId | None, mark: bytes) -> list[Row]:
    """The living processes of one task, the leader first where it lives.

    A process belongs by any of three signs, since a script may take off each of them: it is in the leader's session,
    it descends from a process that belongs, or its environment holds `mark`. The table must be fresh. A session's
    number is not given out again while anybody is in it, and who is in it began after its leader.
    """
    found = {row.pid for row in rows.values() if row.mark == mark or _in_session_of(row, leader, rows)}
    found = descendants(rows, found)
    living = [rows[pid] for pid in found if rows[pid].is_alive and pid != os.getpid()]
    return sorted(living, key=lambda row: (leader is None or row.pid != leader.pid, row.pid))


def descendants(rows: Mapping[int, Row], roots: Iterable[int]) -> set[int]:
    """`roots` and all that descend from them."""
    children: dict[int, list[int]] = {}
    for row in rows.values():
        children.setdefault(row.parent, []).append(row.pid)
    found: set[int] = set()
    waiting = [pid for pid in roots if pid in rows]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting.extend(children.get(pid, ()))
    return found


def memory_of(rows: Iterable[Row]) -> int:
    """Bytes that these processes use together. The kernel is asked for each one's fair share, which is dear."""
    return sum(map(_fair_share, rows))


def memory_at_most(rows: Iterable[Row]) -> int:
    """The same from what is known already: it counts shared pages once per process, which is too much for a script with
    forked children."""
    return sum(row.resident for row in rows)


def machine_oom_kills() -> int:
    """How many processes the kernel has killed for memory since boot; 0 where it does not say."""
    try:
        with open("/proc/vmstat", encoding="ascii") as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
    except OSError:
        return 0


def _in_session_of(row: Row, leader: ProcessId | None, rows: Mapping[int, Row]) -> bool:
    if leader is None or row.session != leader.pid or leader.boot != boot_id() or row.started < leader.started:
        return False
    head = rows.get(leader.pid)
    return head is None or head.started == leader.started


def _mark(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:  # gone meanwhile, or another user's
        return b""
    return next((one.removeprefix(MARK) for one in variables if one.startswith(MARK)), b"")


def _fair_share(row: Row) -> int:
    try:
        with open(f"/proc/{row.pid}/smaps_rollup", encoding="ascii") as lines:
            return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), row.resident)
    except OSError:
        return row.resident


def _row(pid: int) -> Row | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The command's name stands in brackets and may itself hold brackets and spaces: count from the last one.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 22:
        return None
    return Row(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        started=int(fields[19]),
        state=fields[0].decode(),
        resident=int(fields[21]) * PAGE,
    )
