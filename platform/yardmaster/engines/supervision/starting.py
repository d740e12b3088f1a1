"""How a run begins: its folder is made beside its place, under a name of its own, and put there in one step when it is
whole; then its supervisor is started, from any process of the portal, as a detached process.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import uuid
from pathlib import Path
from types import TracebackType

from yardmaster.engines.supervision.folder import RunFolder
from yardmaster.engines.supervision.processes import ProcessId, identify
from yardmaster.errors import Unavailable


class Draft:
    """`with Draft(runs, name) as draft: draft.folder.make(…); draft.publish()`. What is not published is removed."""

    def __init__(self, runs: Path, name: str) -> None:
        me = identify(os.getpid())
        assert me is not None  # /proc has an entry for its reader
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


_MODULE = "yardmaster.engines.supervision.supervisor"
_PATIENCE = 30.0


def start_supervisor(folder: RunFolder, python: str, source_root: Path) -> None:
    """Returns when a supervisor is in charge: this one, or another that was quicker. Raises `Unavailable` with its last
    words where it could not begin. Blocks for about 0.1 s."""
    with open(folder.log_file, "ab") as log:
        try:
            # -S: it needs nothing that is installed, and reading what is installed would take half of its start.
            done = subprocess.run(
                [python, "-S", "-P", "-m", _MODULE, str(folder.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PYTHONPATH": str(source_root), "LANG": "C.UTF-8"},
                start_new_session=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"The supervisor of run {folder.path.name} could not be started: {error}") from error
    if done.returncode != 0 and folder.exists():
        words = folder.log_file.read_text(errors="replace").strip().splitlines()
        raise Unavailable(
            f"The supervisor of run {folder.path.name} ended at once: {words[-1] if words else 'it said nothing'}",
            remedy=f"See {folder.log_file}.",
        )
