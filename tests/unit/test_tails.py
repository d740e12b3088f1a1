"""No file and no function grows past what can be read at once. Medians do not tell good code from bad: tails do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FILE = 400
LONGEST_FUNCTION = 50


def sources() -> Iterator[tuple[Path, str]]:
    for folder in ("platform", "apps", "celery_worker", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path.relative_to(ROOT), path.read_text()


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def test_no_file_is_longer_than_can_be_kept_in_mind():
    lengths = {str(path): text.count("\n") for path, text in sources()}
    assert {path: lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_no_function_is_longer_than_a_screen():
    found = {
        f"{path}:{node.name}": length(node)
        for path, text in sources()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {place: lines for place, lines in found.items() if lines > LONGEST_FUNCTION} == {}
