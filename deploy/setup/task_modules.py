"""Writes `platform/yardmaster/code/task_modules.py`: what can be imported in a task, by the distributions of its image.

Run by the Python of the tasks: `.venv-tasks/bin/python deploy/setup/task_modules.py`, after the lock has changed.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "deploy/images/task/requirements.txt"
TARGET = ROOT / "platform/yardmaster/code/task_modules.py"
NAMESPACES = frozenset({"google"})
"""Folders that several distributions share: there the name of the second level is the module."""


def distributions() -> list[str]:
    """The names in the lock, as they are compared."""
    return sorted({normal(found) for found in re.findall(r"^([A-Za-z0-9][\w.-]*)==", LOCK.read_text(), re.MULTILINE)})


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def modules_of(name: str) -> list[str]:
    """What the installed distribution lets a script import; nothing of one that is for other systems."""
    found = set()
    try:
        files = metadata.distribution(name).files or []
    except metadata.PackageNotFoundError:
        return []
    for path in files:
        parts = list(path.parts)
        if parts[0] in ("..", "__pycache__") or parts[0].endswith((".dist-info", ".libs", ".data", "-stubs")):
            continue
        if parts[0] in NAMESPACES and len(parts) > 2:
            found.add(".".join(parts[:2]))
        elif len(parts) > 1 or path.suffix == ".py" or ".so" in path.suffixes:
            found.add(parts[0].partition(".")[0])
    return sorted(one for one in found if one.replace(".", "").isidentifier())


def text() -> str:
    rows = "".join(f'    "{name}": {_tuple(modules_of(name))},\n' for name in distributions())
    return (
        '"""What can be imported in a task, by distribution. Written by `deploy/setup/task_modules.py`."""\n\n'
        "from __future__ import annotations\n\n"
        "from collections.abc import Mapping\n"
        "from types import MappingProxyType\n\n"
        f"MODULES: Mapping[str, tuple[str, ...]] = MappingProxyType({{\n{rows}}})  # fmt: skip\n"
    )


def _tuple(names: list[str]) -> str:
    return "({})".format("".join(f'"{one}", ' for one in names).rstrip()) if names else "()"


if __name__ == "__main__":
    TARGET.write_text(text())
    sys.stdout.write(f"{TARGET}\n")
