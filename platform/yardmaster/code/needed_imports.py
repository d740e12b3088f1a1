"""Which modules a file imports when it starts, without choice: neither within a function, nor where the script is ready
for the case that the module is not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeGuard

_CATCHES_IMPORTS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def needed_imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Dotted names of modules with their lines. Relative imports are of the same code, and left out."""
    yield from _of(tree.body)


def _of(body: Sequence[ast.stmt]) -> Iterator[tuple[str, int]]:
    waiting = list(reversed(body))
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Import):
            yield from ((alias.name, one.lineno) for alias in one.names)
        elif isinstance(one, ast.ImportFrom) and one.module and not one.level:
            yield from ((f"{one.module}.{alias.name}", one.lineno) for alias in one.names)
        elif isinstance(one, ast.Try):
            tried = [] if any(map(_catches_imports, one.handlers)) else [*one.body, *one.orelse]
            waiting += reversed([*tried, *one.finalbody])
        elif isinstance(one, (ast.With, ast.ClassDef)) or is_main_guard(one):
            waiting += reversed(one.body)


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(one is None or (isinstance(one, ast.Name) and one.id in _CATCHES_IMPORTS) for one in kinds)


def is_main_guard(node: ast.stmt) -> TypeGuard[ast.If]:
    """`if __name__ == "__main__":`, whose block runs in the script alone."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    return any(isinstance(one, ast.Name) and one.id == "__name__" for one in sides)
