"""Wheels of packages that the index has none of: made on this machine from their sources, once, and kept. Only of pure
Python, since machines have other processors. The sources are compared with the hashes of the lock before any of their
code runs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from yardmaster.errors import Unavailable

SOURCES_ONLY = ("pyspark",)
"""Packages of the project's locks that have no wheel at the index."""
_PATIENCE = 1800.0
_PURE = "-none-any.whl"


def split(lock: str) -> tuple[str, dict[str, str]]:
    """The requirements of a lock that have wheels, and the entries of the others by name. Pure."""
    kept, others, place = list[str](), dict[str, list[str]](), None
    for line in lock.splitlines():
        if line and not line[0].isspace():
            name = line.partition("==")[0]
            place = others.setdefault(name, []) if name in SOURCES_ONLY else None
        (kept if place is None else place).append(line)
    return "\n".join(kept) + "\n", {name: "\n".join(lines) + "\n" for name, lines in others.items()}


def wheel_of(root: Path, name: str, entry: str) -> Path:
    """The wheel of this entry of a lock, in a folder of its own under `root`. Raises `Unavailable`."""
    folder = root / "built" / hashlib.sha256(entry.encode()).hexdigest()[:24]
    found = sorted(folder.glob("*.whl"))
    if not found:
        draft = folder.with_name(folder.name + ".draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700, parents=True)
        (draft / "lock.txt").write_text(entry)
        try:
            run_pip(_command(name, draft), draft)
            if not list(draft.glob(f"*{_PURE}")):
                raise Unavailable(f"The wheel of {name} is not for every machine.")
            (draft / "lock.txt").unlink()
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        found = sorted(folder.glob("*.whl"))
    return found[0]


def _command(name: str, folder: Path) -> list[str]:
    """What the build itself needs comes as wheels."""
    return ["wheel", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-binary", name, "--no-cache-dir",
            "--wheel-dir", str(folder), "-r", str(folder / "lock.txt")]  # fmt: skip


def run_pip(arguments: Sequence[str], folder: Path) -> None:
    """Of the portal's own environment; its scratch files are in `folder`, as /tmp may be small. Raises `Unavailable`
    with pip's words."""
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, check=False,
            env={**os.environ, "TMPDIR": str(scratch)},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"The wheels could not be fetched: {error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if done.returncode != 0:
        raise Unavailable(
            f"The wheels could not be fetched: {done.stderr.strip()[-800:]}",
            remedy="See whether the package index is reached from here.",
        )
