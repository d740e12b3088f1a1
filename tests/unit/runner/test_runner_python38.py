"""The runner must run where only an old Python is: nothing newer than 3.8, and nothing but the standard library."""

import ast
import sys
from pathlib import Path

import pytest

import yardmaster_runner

FILES = sorted(Path(yardmaster_runner.__file__).parent.glob("*.py"))
NEWER_NAMES = {
    "removeprefix", "removesuffix", "StrEnum", "batched", "pairwise", "TaskGroup", "ExceptionGroup", "to_thread",
    "waitstatus_to_exitcode", "bit_count", "aiter", "anext", "UTC", "zoneinfo", "tomllib", "graphlib", "randbytes",
    "file_digest", "process_group", "add_note", "assert_type", "assert_never", "override", "Self", "TypeAlias",
    "ParamSpec", "Annotated", "is_relative_to", "readlink", "hardlink_to", "unparse", "EnumType",
}  # fmt: skip
NEWER_ARGUMENTS = {"slots", "kw_only", "strict", "process_group", "pipesize", "delete_on_close"}
NEWER_BUILTIN_GENERICS = {"list", "dict", "tuple", "set", "frozenset", "type"}


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def tree(request):
    return ast.parse(request.param.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_there_is_something_to_check():
    assert len(FILES) > 20


def test_every_file_is_python_3_8(tree):
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body) or not any(
        isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in ast.walk(tree)
    )


def test_no_file_uses_names_that_came_later(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert node.attr not in NEWER_NAMES, node.lineno
        elif isinstance(node, ast.Name):
            assert node.id not in NEWER_NAMES, node.lineno
        elif isinstance(node, ast.keyword):
            assert node.arg not in NEWER_ARGUMENTS, node.value.lineno
        elif type(node).__name__ in ("Match", "TryStar"):
            raise AssertionError(f"line {node.lineno}")


def run_time_expressions(tree):
    """Every expression that is evaluated when the module runs: all but annotations."""
    skipped = set()
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            annotation = getattr(node, name, None)
            if annotation is not None:
                skipped.update(ast.walk(annotation))
    return [node for node in ast.walk(tree) if node not in skipped]


def test_no_union_bars_or_builtin_generics_at_run_time(tree):
    for node in run_time_expressions(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            assert node.value.id not in NEWER_BUILTIN_GENERICS, node.lineno
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            assert not any(isinstance(side, ast.Constant) and side.value is None for side in (node.left, node.right))


def test_only_the_standard_library_is_imported(tree):
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        for module in modules:
            top = module.split(".")[0]
            assert top == "yardmaster_runner" or top in sys.stdlib_module_names, module
