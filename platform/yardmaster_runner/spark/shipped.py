"""What of a job's code goes to executors elsewhere: one archive, from which Python imports."""

from __future__ import annotations

import os
import zipfile
from typing import Iterator, Tuple

NAME = "job-code.zip"
_LEFT_OUT = ("__pycache__", ".git")
_OURS = "yardmaster_runner"


def make(code_dir: str, offered_dir: str, work_dir: str) -> str:
    """The archive's path: the job's code, and of the runner what scripts may import. Raises `OSError`."""
    path = os.path.join(work_dir, NAME)
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED, compresslevel=1, strict_timestamps=False) as archive:
        for name, where in _files(os.path.join(offered_dir, _OURS), _OURS):
            archive.write(where, name)
        for name, where in _files(code_dir, ""):
            if not name.startswith(_OURS + "/"):
                archive.write(where, name)
    os.replace(path + ".new", path)
    return path


def _files(top: str, prefix: str) -> Iterator[Tuple[str, str]]:
    """The name in the archive, and the path, of each file below `top`."""
    for folder, inner, names in os.walk(top):
        inner[:] = sorted(one for one in inner if one not in _LEFT_OUT)
        for name in sorted(names):
            where = os.path.join(folder, name)
            inside = os.path.relpath(where, top).replace(os.sep, "/")
            if os.path.isfile(where):
                yield "%s/%s" % (prefix, inside) if prefix else inside, where
