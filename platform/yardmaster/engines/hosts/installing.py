"""Sends what tasks import to machines. The wheels that the locks name are fetched once, for each Python and processor
that machines have, and kept under the engine's folder; the machines themselves fetch nothing.

Spark has no wheel, and is made one here (`building`). Where a machine has no Java, it gets one with Spark.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from yardmaster.engines.hosts import building
from yardmaster.engines.hosts.connection import Links
from yardmaster.engines.hosts.inventory import Host
from yardmaster.engines.hosts.kinds import (
    SPARK_LOCKS,
    TASK_LOCK,
    WORKBENCH_LOCK,
    Kind,
    of_notebooks,
    of_spark,
    of_tasks,
    uv_pinned,
)

_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")


class Installer:
    """`say` tells people how far it is. `lock` is that of the task environment, `workbench_lock` that of JupyterLab,
    `spark_locks` those of Spark and of a Java."""

    def __init__(
        self,
        root: Path,
        links: Links,
        say: Callable[[str], None],
        lock: Path = TASK_LOCK,
        workbench_lock: Path = WORKBENCH_LOCK,
        spark_locks: tuple[Path, ...] = SPARK_LOCKS,
    ) -> None:
        self._root, self._links, self._say = root / "wheels", links, say
        self._tasks = of_tasks(lock)
        self._workbench_lock, self._spark_locks = workbench_lock, spark_locks

    def install(self, host: Host, *, workbench: bool = False, spark: bool = False) -> None:
        """Have the machine's tasks import what the lock names, with `workbench` its notebooks what theirs names, and
        with `spark` its Spark jobs what theirs name. Already so: nothing is sent. Begun and interrupted: what has
        arrived is not sent again."""
        self._install(host, self._tasks)
        if workbench:
            self._install(host, self._workbench(self._links.hello(host)))
        if spark:
            self._install(host, self._spark(self._links.hello(host)))

    def _workbench(self, hello: Mapping[str, Any]) -> Kind:
        return of_notebooks(self._workbench_lock, self._tasks.digest(hello))

    def _spark(self, hello: Mapping[str, Any]) -> Kind:
        return of_spark(self._spark_locks, has_java=bool(hello.get("java")))

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
            lock, sources = building.split(kind.needs(hello))
            (folder / "lock.txt").write_text(lock)
            self._fetch(folder, folder / "lock.txt", python, machine)
            for name, entry in sources.items():
                self._add_built(folder, name, entry)
            (folder / ".complete").touch()
        return tuple(sorted(folder.glob("*.whl")))

    def _add_built(self, folder: Path, name: str, entry: str) -> None:
        self._say(f"The index has no wheel of {name}: it is made here, once ...")
        wheel = building.wheel_of(self._root, name, entry)
        os.link(wheel, folder / wheel.name)

    def _fetch(self, folder: Path, lock: Path, python: str, machine: str) -> None:
        """By pip, as uv downloads no wheels. No code of a package runs. `python` is the whole version: some packages
        need a later one of its series."""
        platforms = [word for one in _PLATFORMS for word in ("--platform", f"{one}_{machine}")]
        common = ["download", "--no-deps", "--only-binary", ":all:", *platforms, "--python-version", python,
                  "--implementation", "cp", "--dest", str(folder)]  # fmt: skip
        for what in (["--require-hashes", "-r", str(lock)], [uv_pinned()]):
            building.run_pip([*common, *what], folder)
