"""What of ours is installed on a machine: the core and the runner, as one archive whose name is made of its content.

Only what a supervisor and a task import: the standard library is all that they need.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from yardmaster.engines.supervision.runs import SOURCE_ROOT

PACKAGES = ("yardmaster", "yardmaster_runner")


@dataclass(frozen=True)
class Bundle:
    """`digest` names it on every machine: the same files have the same name."""

    digest: str
    data: bytes
    """A tar archive, compressed by gzip."""


@cache
def bundle(root: Path = SOURCE_ROOT) -> Bundle:
    """Made once per process; takes about 0.3 s."""
    paths = sorted(path for name in PACKAGES for path in (root / name).rglob("*") if _belongs(path))
    digest, packed = hashlib.sha256(), io.BytesIO()
    zipped = gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, compresslevel=6)
    with zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for path in paths:
            data = path.read_bytes()
            entry = tarfile.TarInfo(path.relative_to(root).as_posix())
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
            digest.update(f"{entry.name}\0{len(data)}\0".encode() + data)
    return Bundle(digest.hexdigest()[:32], packed.getvalue())


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
