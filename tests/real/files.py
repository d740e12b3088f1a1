"""What lies in a folder that others write to."""

from __future__ import annotations

import os
from pathlib import Path


def all_below(folder: Path) -> list[Path]:
    """Files and folders below it. Passes over folders that go meanwhile, where `Path.rglob` fails."""
    return [Path(parent, name) for parent, folders, files in os.walk(folder) for name in folders + files]
