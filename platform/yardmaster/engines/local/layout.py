"""What is where under the local engine's root, which all its processes share.

runs/<name>/     one folder per run (`folder`)
ports/, gpus/    who holds which (`ledger`)
changes          the journal (`journal`)
"""

from __future__ import annotations

from pathlib import Path

from yardmaster.engines.local.folder import RunFolder
from yardmaster.engines.local.ledger import Ledger
from yardmaster.ids import JobKey


class Layout:
    """The places under `root`. Touches nothing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs = root / "runs"
        self.journal = root / "changes"
        self.ports = Ledger(root / "ports", self._is_run)
        self.gpus = Ledger(root / "gpus", self._is_run)

    def run(self, key: JobKey) -> RunFolder:
        return RunFolder(self.runs / key.name)

    def _is_run(self, name: str) -> bool:
        return (self.runs / name).exists()
