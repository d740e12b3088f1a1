"""What lies in a folder that others write to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def all_below(folder: Path) -> Iterator[Path]:
    """Files and folders below it. Passes over folders that go meanwhile, where `Path.rglob` fails."""
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in folders + files)
