"""Who holds which of a machine's countable things: ports and GPUs. One link per claim, in one folder.

A claim is a symbolic link whose name is the thing and whose target names the holder. Making a link is atomic, refuses
to replace one, and carries its content in the same step, so that no reader sees half a claim and no crash leaves one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from yardmaster.engines.supervision.processes import ProcessId, identify


class Ledger:
    """Claims under `folder`. `is_run(name)` says whether a run of this name is there: claims of others are void once
    the process that made them is gone too (it died between claiming and making the run)."""

    def __init__(self, folder: Path, is_run: Callable[[str], bool]) -> None:
        self.folder = folder
        self._is_run = is_run

    def claim(self, run: str, candidates: Iterable[str], count: int, is_usable: Callable[[str], bool]) -> list[str]:
        """`count` of the candidates that are not held and that are usable, now held by `run`; fewer where there are
        no more, and then nothing is held. Raises `OSError` where the folder cannot be written."""
        if count == 0:
            return []
        taken: list[str] = []
        try:
            with locked(self.folder):
                for name in candidates:
                    if is_usable(name) and self._take(run, name):
                        taken.append(name)
                        if len(taken) == count:
                            return taken
        except BaseException:
            self.free(run, taken)
            raise
        self.free(run, taken)
        return []

    def free(self, run: str, names: Iterable[str] | None = None) -> None:
        """Give back what `run` holds: these, or all. What it does not hold is left alone. Needs no disk space."""
        for name in list(self.held_by(run)) if names is None else list(names):
            if self._holder(name)[0] == run:
                (self.folder / name).unlink(missing_ok=True)

    def held_by(self, run: str) -> set[str]:
        """What `run` holds now."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return set()
        return {name for name in names if self._holder(name)[0] == run}

    def _take(self, run: str, name: str) -> bool:
        path = self.folder / name
        holder, maker = self._holder(name)
        if holder:
            if self._is_run(holder) or _is_alive(maker):
                return False
            path.unlink(missing_ok=True)
        try:
            os.symlink(f"{run}#{_own_name()}", path)
        except FileExistsError:
            return False
        return True

    def _holder(self, name: str) -> tuple[str, str]:
        try:
            run, _, maker = os.readlink(self.folder / name).partition("#")
        except OSError:  # no holder, or not a claim
            return "", ""
        return run, maker


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time, while what is free is looked at and claimed; the folder is made where it is not there.
    Raises `OSError`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _own_name() -> str:
    me = identify(os.getpid())
    assert me is not None  # /proc has an entry for its reader
    return f"{me.pid},{me.started},{me.boot}"


def _is_alive(maker: str) -> bool:
    pid, _, rest = maker.partition(",")
    started, _, boot = rest.partition(",")
    return pid.isdigit() and started.isdigit() and ProcessId(int(pid), int(started), boot).is_alive()
