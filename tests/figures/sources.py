"""The project's Python modules, read as text: their lines, functions and imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, eq=False)
class Module:
    """A file of a source root. `name` is what it is imported by."""

    root: str
    name: str
    path: Path
    text: str

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def written_lines(self) -> int:
        """Those that are not blank."""
        return sum(bool(line.strip()) for line in self.text.splitlines())

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def only_names_app(self) -> bool:
        return self.path.name == "apps.py" and not self.functions

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def functions(self) -> list[int]:
        """The lines of each function, methods and inner ones included."""
        nodes = (one for one in ast.walk(self.tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
        return [(one.end_lineno or one.lineno) - one.lineno + 1 for one in nodes]

    def imports(self) -> Iterator[str]:
        """What each import statement names, those within functions included: `from a.b import c` is `a.b.c`. One that
        stands under several statements comes several times."""
        package = self.name if self.is_package else self.name.rpartition(".")[0]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = _absolute(package, node.level, node.module or "")
                yield from (f"{base}.{alias.name}" for alias in node.names)


def _absolute(package: str, level: int, module: str) -> str:
    if not level:
        return module
    above = package.split(".")[: len(package.split(".")) - (level - 1)]
    return ".".join([*above, *([module] if module else [])])


def source_roots() -> dict[str, Path]:
    """By name: `apps`, `celery_worker`, and each package in `platform`."""
    inside = sorted(one for one in (ROOT / "platform").iterdir() if one.is_dir() and one.name != "__pycache__")
    return {
        "apps": ROOT / "apps",
        **{f"platform/{one.name}": one for one in inside},
        "celery_worker": ROOT / "celery_worker",
    }


def modules() -> list[Module]:
    """Every module of the source roots but migrations."""
    found = []
    for root, folder in source_roots().items():
        for path in sorted(folder.rglob("*.py")):
            if "migrations" in path.parts:
                continue
            parts = path.relative_to(folder.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found.append(Module(root, name, path, path.read_text()))
    return found


def targets(module: Module, known: set[str]) -> set[str]:
    """The modules among `known` that this one imports: what an import names, or else the module that has that name."""
    found = set()
    for name in module.imports():
        target = name if name in known else name.rpartition(".")[0]
        if target in known and target != module.name:
            found.add(target)
    return found
