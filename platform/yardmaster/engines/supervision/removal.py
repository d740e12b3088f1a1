"""Remove a run and whatever still runs of it, in an order that may be interrupted anywhere and begun again.

First the order goes: from then on the run is no more, and no supervisor begins. Then the supervisor, so that nothing
is started. Then every process. Then the files. Nothing of it needs disk space.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from yardmaster.engines.supervision import launch, scratch
from yardmaster.engines.supervision.control_groups import ControlGroup
from yardmaster.engines.supervision.facts import task_name
from yardmaster.engines.supervision.folder import RunFolder
from yardmaster.engines.supervision.processes import identify, members, send_signal, table
from yardmaster.errors import Unavailable

_PATIENCE = 5.0
_SOON = 0.01


def remove_run(folder: RunFolder) -> None:
    """Absent: success. Raises `Unavailable` where the kernel does not end a process within seconds."""
    control_group = folder.control_group()
    folder.order_file.unlink(missing_ok=True)
    with _in_charge(folder):
        _kill_all(folder)
        if control_group:
            for task in folder.tasks():
                ControlGroup(Path(control_group), f"{folder.path.name}.{task_name(*task)}").remove()
        scratch.remove(folder)
        shutil.rmtree(folder.path, ignore_errors=True)
        _let_us_in(folder.path)
        # Another process may have been writing, or removing: once more, and now what is wrong is reported.
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder.path)


def _let_us_in(folder: Path) -> None:
    """Some programs leave folders in a home that even their owner may not change."""
    for path, names, _ in os.walk(folder):
        for one in (Path(path, name) for name in names):
            with contextlib.suppress(OSError):
                if not one.is_symlink():
                    one.chmod(0o700)


@contextlib.contextmanager
def _in_charge(folder: RunFolder) -> Iterator[None]:
    """Hold the run's lock, taken from its supervisor by force."""
    deadline = time.monotonic() + _PATIENCE
    while (lock := folder.take_lock()) is None and folder.path.exists():
        pid = folder.supervisor()
        holder = None if pid is None else identify(pid)
        # Asked again, so that a pid that has come round meanwhile is not killed. Our own pid is another thread's work.
        if holder is not None and holder.pid != os.getpid() and folder.supervisor() == pid:
            holder.signal(signal.SIGKILL)
        if time.monotonic() > deadline:
            raise Unavailable(f"The supervisor of run {folder.path.name} does not end.")
        time.sleep(_SOON)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _kill_all(folder: RunFolder) -> None:
    tasks = [(folder.read_facts(*task).leader, launch.mark(folder, *task)) for task in folder.tasks()]
    deadline = time.monotonic() + _PATIENCE
    while True:
        rows = table()
        living = {row.pid for leader, mark in tasks for row in members(rows, leader, mark)}
        if not living:
            return
        for pid in living:
            send_signal(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise Unavailable(f"{len(living)} processes of run {folder.path.name} do not end: {sorted(living)}.")
        time.sleep(_SOON)
