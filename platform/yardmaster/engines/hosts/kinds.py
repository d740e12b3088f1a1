"""What a machine's environments are made of, by this release: the one of tasks, JupyterLab on top of it, and Spark.
Pure, but for the locks that it reads.

Not here: sending and making them (`installing`, `environment`).
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker

from yardmaster.engines.hosts.environment import SPARK, TASKS, WORKBENCH
from yardmaster.engines.supervision.runs import SOURCE_ROOT
from yardmaster.errors import Misconfigured

TASK_LOCK = SOURCE_ROOT.parent / "deploy" / "images" / "task" / "requirements.txt"
WORKBENCH_LOCK = SOURCE_ROOT.parent / "deploy" / "images" / "workbench" / "requirements.txt"
"""Of what lies on top of the task environment."""
_SPARK = SOURCE_ROOT.parent / "deploy" / "spark"
SPARK_LOCKS = (_SPARK / "requirements.txt", _SPARK / "java" / "requirements.txt")
"""Of Spark, and of a Java."""
PORTAL_LOCK = SOURCE_ROOT.parent / "requirements.txt"
"""Names the version of uv."""


@dataclass(frozen=True)
class Kind:
    """One environment. `link`: what machines call it, `name`: what people do. `locks` are requirements files with
    hashes. `beneath`: the digest of the environment that it lies on top of; empty: of none."""

    link: str
    name: str
    locks: tuple[Path, ...]
    beneath: str = ""

    def needs(self, hello: Mapping[str, Any]) -> str:
        """The entries of the locks that apply to a machine."""
        text = "".join(lock.read_text() for lock in self.locks)
        return entries_for(text, str(hello["python"]), str(hello["machine"]))

    def digest(self, hello: Mapping[str, Any]) -> str:
        """Of what decides the environment of a machine."""
        machine = f"{_series(str(hello['python']))} {hello['machine']}"
        text = f"{self.needs(hello)}{machine} {uv_pinned()}{self.beneath}"
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
    tasks = of_tasks(lock).digest(hello)
    return {TASKS: tasks, WORKBENCH: of_notebooks(workbench_lock, tasks).digest(hello)}


@functools.lru_cache(maxsize=64)
def digests_of_release(python: str, machine: str) -> Mapping[str, str]:
    """The same by the shipped locks, which stay as they are while the portal runs. Empty where it is not known."""
    try:
        return wanted_digests({"python": python, "machine": machine})
    except (OSError, Misconfigured, ValueError):  # the last: what the machine calls its Python is no version
        return {}


def of_tasks(lock: Path) -> Kind:
    return Kind(TASKS, "the task environment", (lock,))


def of_notebooks(lock: Path, tasks: str) -> Kind:
    """On top of the task environment of this digest."""
    return Kind(WORKBENCH, "JupyterLab", (lock,), tasks)


def of_spark(locks: tuple[Path, ...], *, has_java: bool) -> Kind:
    """`locks`: of Spark, and of the Java that a machine without one gets with it."""
    return Kind(SPARK, "Spark", locks[:1] if has_java else locks)


def _series(version: str) -> str:
    """`3.11` of `3.11.2`."""
    return ".".join(version.split(".")[:2])


def uv_pinned() -> str:
    """The requirement of uv, as the portal's lock pins it."""
    found = re.search(r"^uv==([0-9.]+)", PORTAL_LOCK.read_text(), re.MULTILINE)
    if found is None:
        raise Misconfigured(f"{PORTAL_LOCK.name} names no version of uv.")
    return f"uv=={found[1]}"
