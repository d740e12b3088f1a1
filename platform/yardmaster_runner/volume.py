"""Versions of datasets on the data volume of a namespace: where each lies, and whether it is all there.

`datasets/<version>/files` has the files. `complete.json` beside it is written last and removed first, so that what an
interrupted task left is never taken for the version. Not here: publishing (`volume_copy`), removing (`volume_remove`).
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional

from yardmaster_runner.cache import SAFE_VERSION
from yardmaster_runner.exits import STAGE_IN_FAILED, CannotRun

DATASETS = "datasets"


class OnVolume:
    """The place of one version."""

    def __init__(self, volume: str, version: str) -> None:
        if not SAFE_VERSION.fullmatch(version):
            raise CannotRun(STAGE_IN_FAILED, "StageInFailed", "%r is no version's id" % version)
        self.folder = os.path.join(volume, DATASETS, version)
        self.files = os.path.join(self.folder, "files")
        self.placing = os.path.join(self.folder, "placing")
        """Files on their way to their places."""
        self._marker = os.path.join(self.folder, "complete.json")

    def complete(self) -> Optional[Dict[str, Any]]:
        """What the marker says; None where the version is not there, or not all of it."""
        try:
            with open(self._marker, encoding="utf-8") as marker:
                said = json.load(marker)
        except (OSError, ValueError):
            return None
        return said if isinstance(said, dict) and os.path.isdir(self.files) else None

    def mark(self, said: Dict[str, Any]) -> None:
        """It is all there, on the volume's server too. Raises `OSError`."""
        temporary = self._marker + ".new"
        with open(temporary, "w", encoding="utf-8") as marker:
            json.dump(said, marker)
            marker.flush()
            os.fsync(marker.fileno())
        os.replace(temporary, self._marker)

    def unmark(self) -> None:
        """It is not, or soon will not be."""
        try:
            os.unlink(self._marker)
        except FileNotFoundError:
            return


def link(volume: str, version: str, target: str) -> None:
    """`target` leads to the files of this version. Raises `CannotRun` where the version is not on the volume, and
    `OSError`."""
    there = OnVolume(volume, version)
    if there.complete() is None:
        message = (
            "version %s is not on the data volume: it was removed, or its publication has not ended. "
            "Publish it again, or read the input from the store" % version
        )
        raise CannotRun(STAGE_IN_FAILED, "InputNotOnVolume", message)
    if os.path.islink(target):  # of an earlier start
        os.unlink(target)
    elif os.path.isdir(target):
        os.rmdir(target)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.symlink(there.files, target)
