"""A run's folder in the making: beside its place, under a name of its own, put there in one step when it is whole."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from pathlib import Path
from types import TracebackType

from yardmaster.engines.local.folder import RunFolder
from yardmaster.engines.local.processes import ProcessId, identify


class Draft:
    """`with Draft(runs, name) as draft: draft.folder.make(…); draft.publish()`. What is not published is removed."""

    def __init__(self, runs: Path, name: str) -> None:
        me = identify(os.getpid())
        assert me is not None  # /proc has whoever reads it
        runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._place = runs / name
        self.folder = RunFolder(runs / f".{name}.{me.pid}.{me.started}.{me.boot}.{uuid.uuid4().hex}")

    def __enter__(self) -> Draft:
        return self

    def publish(self) -> bool:
        """Put the folder in its place; false where one is there already, which stays as it is."""
        try:
            os.rename(self.folder.path, self._place)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                return False
            raise
        return True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        shutil.rmtree(self.folder.path, ignore_errors=True)


def remove_drafts(runs: Path, name: str) -> None:
    """Remove drafts of this run whose makers were killed over them."""
    for path in runs.glob(f".{name}.*"):
        pid, started, boot, _ = path.name.rsplit(".", 4)[1:]
        if not ProcessId(int(pid), int(started), boot).is_alive():
            shutil.rmtree(path, ignore_errors=True)
