"""Sends what tasks import to machines. The wheels that the lock names are fetched once, for each Python and processor
that machines have, and kept under the engine's folder; the machines themselves fetch nothing.
"""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker

from yardmaster.engines.hosts.connection import Links
from yardmaster.engines.hosts.environment import TASKS, WORKBENCH
from yardmaster.engines.hosts.inventory import Host
from yardmaster.engines.supervision.runs import SOURCE_ROOT
from yardmaster.errors import Misconfigured, Unavailable

TASK_LOCK = SOURCE_ROOT.parent / "deploy" / "images" / "task" / "requirements.txt"
WORKBENCH_LOCK = SOURCE_ROOT.parent / "deploy" / "images" / "workbench" / "requirements.txt"
"""Of what lies on top of the task environment."""
PORTAL_LOCK = SOURCE_ROOT.parent / "requirements.txt"
"""Names the version of uv."""
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
_FETCH_PATIENCE = 1800.0


@dataclass(frozen=True)
class Kind:
    """One environment. `link`: what machines call it, `name`: what people do. `lock` is a requirements file with
    hashes. `beneath`: the digest of the environment that it lies on top of; empty: of none."""

    link: str
    name: str
    lock: Path
    beneath: str = ""

    def needs(self, hello: Mapping[str, Any]) -> str:
        """The entries of the lock that apply to a machine."""
        return entries_for(self.lock.read_text(), str(hello["python"]), str(hello["machine"]))

    def digest(self, hello: Mapping[str, Any]) -> str:
        """Of what decides the environment of a machine."""
        machine = f"{_series(str(hello['python']))} {hello['machine']}"
        text = f"{self.needs(hello)}{machine} {_uv()}{self.beneath}"
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def entries_for(lock: str, python: str, machine: str) -> str:
    """Of a requirements file with hashes, what applies to this version of Python on this processor, without conditions:
    pip would judge them by the Python that it runs on. Pure."""
    environment = {
        "python_version": _series(python), "python_full_version": python, "platform_machine": machine,
        "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix",
        "implementation_name": "cpython", "implementation_version": python,
        "platform_python_implementation": "CPython",
    }  # fmt: skip
    kept, applies = list[str](), True
    for line in lock.splitlines():
        if line and not line[0].isspace() and not line.startswith("#"):
            requirement, _, condition = line.rstrip("\\ ").partition(" ; ")
            applies = not condition or Marker(condition).evaluate(environment)
            kept += [requirement + (" \\" if line.endswith("\\") else "")] if applies else []
        elif applies and not line.lstrip().startswith("#"):
            kept.append(line)
    return "\n".join(kept) + "\n"


def wanted_digests(
    hello: Mapping[str, Any], lock: Path = TASK_LOCK, workbench_lock: Path = WORKBENCH_LOCK
) -> dict[str, str]:
    """The digest of each environment that this release installs on a machine, by link. Raises `OSError` and
    `Misconfigured` where this checkout does not say it."""
    tasks = _tasks(lock).digest(hello)
    return {TASKS: tasks, WORKBENCH: _workbench(workbench_lock, tasks).digest(hello)}


@functools.lru_cache(maxsize=64)
def digests_of_release(python: str, machine: str) -> Mapping[str, str]:
    """The same by the shipped locks, which stay as they are while the portal runs. Empty where it is not known."""
    try:
        return wanted_digests({"python": python, "machine": machine})
    except (OSError, Misconfigured, ValueError):  # the last: what the machine calls its Python is no version
        return {}


def _tasks(lock: Path) -> Kind:
    return Kind(TASKS, "the task environment", lock)


def _workbench(lock: Path, tasks: str) -> Kind:
    return Kind(WORKBENCH, "JupyterLab", lock, tasks)


class Installer:
    """`say` tells people how far it is. `lock` is that of the task environment, `workbench_lock` that of JupyterLab."""

    def __init__(
        self,
        root: Path,
        links: Links,
        say: Callable[[str], None],
        lock: Path = TASK_LOCK,
        workbench_lock: Path = WORKBENCH_LOCK,
    ) -> None:
        self._root, self._links, self._say = root / "wheels", links, say
        self._tasks = _tasks(lock)
        self._workbench_lock = workbench_lock

    def install(self, host: Host, *, workbench: bool = False) -> None:
        """Have the machine's tasks import what the lock names, and with `workbench` its notebooks what theirs names.
        Already so: nothing is sent. Begun and interrupted: what has arrived is not sent again."""
        self._install(host, self._tasks)
        if workbench:
            self._install(host, _workbench(self._workbench_lock, self._tasks.digest(self._links.hello(host))))

    def _install(self, host: Host, kind: Kind) -> None:
        hello = self._links.hello(host)
        digest = kind.digest(hello)
        if self._links.call(host, "environment", link=kind.link)["current"] == digest:
            return self._say(f"{host.name}: {kind.name} is there.")
        wheels = self._wheels(digest, kind, hello)
        sizes = {path.name: path.stat().st_size for path in wheels}
        missing = self._links.call(host, "environment_missing", link=kind.link, digest=digest, wheels=sizes)
        sent = [path for path in wheels if path.name in missing["names"]]
        amount = sum(sizes[path.name] for path in sent)
        self._say(f"{host.name}: sending {len(sent)} wheels, {amount >> 20} MiB ...")
        self._links.send_files(host, sent, missing["folder"])
        self._say(f"{host.name}: installing ...")
        self._links.call(host, "environment_install", link=kind.link, digest=digest, beneath=kind.beneath)
        return self._say(f"{host.name}: {kind.name} is there.")

    def _wheels(self, digest: str, kind: Kind, hello: Mapping[str, Any]) -> tuple[Path, ...]:
        folder, python, machine = self._root / digest, str(hello["python"]), str(hello["machine"])
        if not (folder / ".complete").exists():
            self._say(f"Fetching the wheels of {kind.name} for Python {python} on {machine} ...")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700, parents=True)
            (folder / "lock.txt").write_text(kind.needs(hello))
            self._fetch(folder, folder / "lock.txt", python, machine)
            (folder / ".complete").touch()
        return tuple(sorted(folder.glob("*.whl")))

    def _fetch(self, folder: Path, lock: Path, python: str, machine: str) -> None:
        """By pip, of the portal's own environment, as uv downloads no wheels. No code of a package runs. `python` is
        the whole version: some packages need a later one of its series."""
        platforms = [word for one in _PLATFORMS for word in ("--platform", f"{one}_{machine}")]
        common = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                  "--disable-pip-version-check", *platforms, "--python-version", python, "--implementation", "cp",
                  "--dest", str(folder)]  # fmt: skip
        for what in (["--require-hashes", "-r", str(lock)], [_uv()]):
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
