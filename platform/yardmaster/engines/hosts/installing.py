"""Sends what tasks import to machines. The wheels that the lock names are fetched once, for each Python and processor
that machines have, and kept under the engine's folder; the machines themselves fetch nothing.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from yardmaster.engines.hosts.connection import Links
from yardmaster.engines.hosts.inventory import Host
from yardmaster.engines.supervision.runs import SOURCE_ROOT
from yardmaster.errors import Misconfigured, Unavailable

TASK_LOCK = SOURCE_ROOT.parent / "deploy" / "images" / "task" / "requirements.txt"
PORTAL_LOCK = SOURCE_ROOT.parent / "requirements.txt"
"""Names the version of uv."""
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
_FETCH_PATIENCE = 1800.0


@dataclass(frozen=True)
class Wheels:
    """What one kind of machine needs. `digest` is made of what decides it."""

    digest: str
    files: tuple[Path, ...]

    def sizes(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in self.files}


class Installer:
    """`say` tells people how far it is. `lock` is a requirements file with hashes."""

    def __init__(self, root: Path, links: Links, say: Callable[[str], None], lock: Path = TASK_LOCK) -> None:
        self._root, self._links, self._say, self._lock = root / "wheels", links, say, lock

    def install(self, host: Host) -> None:
        """Have the machine's tasks import what the lock names. Already so: nothing is sent. Begun and interrupted: what
        has arrived is not sent again."""
        hello = self._links.hello(host)
        kind = (_series(str(hello["python"])), str(hello["machine"]))
        digest = self._digest(*kind)
        if self._links.call(host, "environment")["current"] == digest:
            return self._say(f"{host.name}: the task environment is there.")
        wheels = self._wheels(digest, *kind)
        missing = self._links.call(host, "environment_missing", digest=digest, wheels=wheels.sizes())
        sent = [path for path in wheels.files if path.name in missing["names"]]
        amount = sum(path.stat().st_size for path in sent)
        self._say(f"{host.name}: sending {len(sent)} wheels, {amount >> 20} MiB ...")
        self._links.send_files(host, sent, missing["folder"])
        self._say(f"{host.name}: installing ...")
        self._links.call(host, "environment_install", digest=digest, patience=_FETCH_PATIENCE)
        return self._say(f"{host.name}: the task environment is there.")

    def _digest(self, python: str, machine: str) -> str:
        text = self._lock.read_bytes() + f"{python} {machine} {_uv()}".encode()
        return hashlib.sha256(text).hexdigest()[:24]

    def _wheels(self, digest: str, python: str, machine: str) -> Wheels:
        folder = self._root / digest
        if not (folder / ".complete").exists():
            self._say(f"Fetching the wheels for Python {python} on {machine} ...")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700, parents=True)
            self._fetch(folder, python, machine)
            (folder / ".complete").touch()
        return Wheels(digest, tuple(sorted(folder.glob("*.whl"))))

    def _fetch(self, folder: Path, python: str, machine: str) -> None:
        """By pip, of the portal's own environment, as uv downloads no wheels. No code of a package runs."""
        platforms = [word for one in _PLATFORMS for word in ("--platform", f"{one}_{machine}")]
        common = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                  "--disable-pip-version-check", *platforms, "--python-version", python, "--implementation", "cp",
                  "--dest", str(folder)]  # fmt: skip
        for what in (["--require-hashes", "-r", str(self._lock)], [_uv()]):
            try:
                done = subprocess.run(
                    [*common, *what], capture_output=True, text=True, timeout=_FETCH_PATIENCE, check=False
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise Unavailable(f"The wheels could not be fetched: {error}") from error
            if done.returncode != 0:
                raise Unavailable(
                    f"The wheels could not be fetched: {done.stderr.strip()[-800:]}",
                    remedy="See whether the package index is reached from here.",
                )


def _series(version: str) -> str:
    """`3.11` of `3.11.2`."""
    return ".".join(version.split(".")[:2])


def _uv() -> str:
    """The requirement of uv, as the portal's lock pins it."""
    found = re.search(r"^uv==([0-9.]+)", PORTAL_LOCK.read_text(), re.MULTILINE)
    if found is None:
        raise Misconfigured(f"{PORTAL_LOCK.name} names no version of uv.")
    return f"uv=={found[1]}"
