"""Writes the asynchronous SDK, `platform/yardmaster_client/aio/made_*.py`, from the synchronous one: the same methods
with the same arguments and types, each of which runs in a thread. A test compares them.

Usage: .venv/bin/python deploy/setup/async_sdk.py [FOLDER]
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "platform" / "yardmaster_client"
LONG = {"wait", "published", "bucket_wait", "connection_wait", "connection_copy_wait", "dataset_make_wait", "fetch"}
"""Calls that may take hours: each has a thread of its own."""


@dataclass(frozen=True)
class Source:
    """A class, the class that is made of it, and the methods that are written by hand."""

    module: str
    name: str
    base: str = "Asynchronous"
    parameters: str = ""
    by_hand: frozenset[str] = frozenset()

    @property
    def made(self) -> str:
        return f"Async{self.name}"


_PORTAL = frozenset({"close", "from_environment", "sign_in", "sign_in_by_browser"})
SOURCES = {
    "made_jobs": [Source("jobs", "Jobs", by_hand=frozenset({"shell", "wait", "wait_all", "watch", "follow"}))],
    "made_stores": [
        Source("stores", "Store", parameters="[Item, Version]"),
        Source("code", "CodeStore", "AsyncStore[Code, CodeVersion]"),
        Source("registry", "Models", "AsyncStore[Model, ModelVersion]"),
    ],
    "made_services": [Source("services", "Services"), Source("sessions", "Sessions")],
    "made_shared": [Source("images", "Images"), Source("spark_clusters", "SparkClusters")],
    "made_sweeps": [Source("sweeps", "Sweeps")],
    "made_schedules": [Source("schedules", "Templates"), Source("schedules", "Schedules")],
    "made_portal": [Source("portal", "Yardmaster", by_hand=_PORTAL)],
}


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for name, sources in SOURCES.items():
        (folder / f"{name}.py").write_text(_finished(module_of(sources)))
    return 0


def module_of(sources: list[Source]) -> str:
    """The text of a module with the classes that are made of these."""
    about = ", ".join(f"`{one.name}`" for one in sources)
    classes, imports = [], dict(_COMMON)
    for source in sources:
        tree = ast.parse((PACKAGE / f"{source.module}.py").read_text())
        imports |= _imports_of(tree)
        imports[source.name] = f"from yardmaster_client.{source.module} import {source.name}"
        if source.parameters:
            imports |= dict.fromkeys(("Item", "Version"), "from yardmaster_client.stores import Item, Version")
        classes.append(_class_of(source, tree))
    body = "\n\n".join(classes)
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    lines = sorted({line for name, line in imports.items() if name in used})
    head = f'"""{about} for asyncio.\n\n{_MADE}\n"""'
    return "\n".join([head, "", "from __future__ import annotations", "", *lines, "", body])


_MADE = "Made by `deploy/setup/async_sdk.py` from the synchronous classes: change those, and run it."
_COMMON = {
    "AsyncGenerator": "from collections.abc import AsyncGenerator",
    "Generic": "from typing import Generic",
    "Asynchronous": "from yardmaster_client.aio.threads import Asynchronous",
    "partial": "from functools import partial",
}


def _imports_of(tree: ast.Module) -> dict[str, str]:
    found = {}
    for node in tree.body:
        for one in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            name = one.asname or one.name
            rest = f"{one.name} as {one.asname}" if one.asname else one.name
            found[name] = f"from {node.module} import {rest}" if isinstance(node, ast.ImportFrom) else f"import {rest}"
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = f"from yardmaster_client.{_module_with(node.name)} import {node.name}"
    return found


def _module_with(name: str) -> str:
    return next(
        one.stem for one in sorted(PACKAGE.glob("*.py")) if re.search(rf"^class {name}\b", one.read_text(), re.M)
    )


def _class_of(source: Source, tree: ast.Module) -> str:
    node = next(one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == source.name)
    bases = source.base + (f", Generic{source.parameters}" if source.parameters else "")
    lines = [f"class {source.made}({bases}):", f'    """See `{source.module}.{source.name}`."""', ""]
    lines.append(f"    _sync: {source.name}{source.parameters}")
    for method in _methods(node):
        if not method.name.startswith("_") and method.name not in source.by_hand:
            lines += ["", *_method_of(method)]
    return "\n".join(lines) + "\n"


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    return (one for one in node.body if isinstance(one, ast.FunctionDef))


def _method_of(method: ast.FunctionDef) -> list[str]:
    returns = ast.unparse(method.returns) if method.returns else "None"
    call = f"partial({', '.join([f'self._sync.{method.name}', *_passed(method.args)])})"
    says = ast.get_docstring(method, clean=False)
    words = [f'        """{says}"""'] if says else []
    if returns.startswith("Iterator["):
        each = returns.removeprefix("Iterator[").removesuffix("]")
        head = f"    def {method.name}({ast.unparse(method.args)}) -> AsyncGenerator[{each}, None]:"
        return [head, *words, f"        return self._iterate({call})"]
    run = "_run_long" if method.name in LONG else "_run"
    head = f"    async def {method.name}({ast.unparse(method.args)}) -> {returns}:"
    return [head, *words, f"        {'return ' if returns != 'None' else ''}await self.{run}({call})"]


def _passed(given: ast.arguments) -> list[str]:
    places = [one.arg for one in (*given.posonlyargs, *given.args)][1:]
    starred = [f"*{given.vararg.arg}"] if given.vararg else []
    named = [f"{one.arg}={one.arg}" for one in given.kwonlyargs]
    return [*places, *starred, *named, *([f"**{given.kwarg.arg}"] if given.kwarg else [])]


def _finished(text: str) -> str:
    """With sorted imports and the project's format."""
    ruff, name = [sys.executable, "-m", "ruff"], str(PACKAGE / "aio" / "made.py")
    for words in (["check", "--fix", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
        command = [*ruff, *words, "--stdin-filename", name, "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE / "aio"))
