"""What lies in a folder that others write to: files may go between two looks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def all_below(folder: Path) -> Iterator[Path]:
    """Files and folders below it. Passes over folders that go meanwhile, where `Path.rglob` fails."""
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in folders + files)


def files_below(folder: Path) -> Iterator[Path]:
    """The files among them."""
    return (path for path in all_below(folder) if path.is_file())


def size_of(file: Path) -> int:
    """0 where it has gone."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def content_of(file: Path) -> bytes:
    """Empty where it has gone."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def files_with(folder: Path, content: bytes) -> list[Path]:
    """The files below it that hold this and nothing else."""
    return [file for file in files_below(folder) if size_of(file) == len(content) and content_of(file) == content]
