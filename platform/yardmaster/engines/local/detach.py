"""Start the supervisor of a run from any process of the portal, as nobody's child."""

from __future__ import annotations

import subprocess
from pathlib import Path

from yardmaster.engines.local.folder import RunFolder
from yardmaster.errors import Unavailable

_MODULE = "yardmaster.engines.local.supervisor"
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
