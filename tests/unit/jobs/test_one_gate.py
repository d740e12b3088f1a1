"""A job's phase is assigned in one module. Who else writes to that column makes a change that leaves no row."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GATE = Path("apps/jobs/state/phase_gate.py")
WRITES = {"update", "create", "update_or_create", "get_or_create", "bulk_create", "bulk_update"}
MODELS = {"Job", "JobAttempt"}
OTHERS = {"TaskFact", "Volume"}
"""Models with a phase of another kind, where a chain of calls begins with their name."""


def sources() -> Iterator[Path]:
    for folder in ("apps", "celery_worker", "platform/portal"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path.relative_to(ROOT)


def assigns_a_phase(tree: ast.AST) -> list[int]:
    """The lines that write to an attribute, column or key called `phase`, as far as it goes to the database."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="phase", ctx=ast.Store()):
                found.append(node.lineno)
            case ast.Call(func=ast.Name("setattr"), args=[_, ast.Constant("phase"), _]):
                found.append(node.lineno)
            case ast.Call(func=ast.Name(name), keywords=given) if name in MODELS and _has_phase(given):
                found.append(node.lineno)
            case ast.Call(func=ast.Attribute(attr=verb) as call, keywords=given) if verb in WRITES and _has_phase(
                given
            ):
                if _root_of(call) not in OTHERS:
                    found.append(node.lineno)
            case ast.FunctionDef() if _writes_a_dict_with_phase(node):
                found.append(node.lineno)
    return found


def _root_of(call: ast.expr) -> str:
    """`Job` of `Job.objects.filter(pk=1).update`; empty where it begins with no name."""
    while isinstance(call, (ast.Attribute, ast.Call)):
        call = call.value if isinstance(call, ast.Attribute) else call.func
    return call.id if isinstance(call, ast.Name) else ""


def _has_phase(keywords: list[ast.keyword]) -> bool:
    return any(one.arg == "phase" for one in keywords)


def _writes_a_dict_with_phase(function: ast.FunctionDef) -> bool:
    """`changes = {"phase": …}` and `….update(**changes)` in the same function."""
    nodes = list(ast.walk(function))
    has_dict = any(
        isinstance(node, ast.Dict) and any(isinstance(key, ast.Constant) and key.value == "phase" for key in node.keys)
        for node in nodes
    )
    writes = any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in WRITES
        and any(one.arg is None for one in node.keywords)
        for node in nodes
    )
    return has_dict and writes


def test_a_jobs_phase_is_assigned_in_the_gate_and_nowhere_else():
    written = {path: assigns_a_phase(ast.parse((ROOT / path).read_text())) for path in sources()}
    assert {path for path, lines in written.items() if lines} == {GATE}


@pytest.mark.parametrize(
    "text",
    [
        "job.phase = 'RUNNING'",
        "setattr(job, 'phase', 'RUNNING')",
        "Job(phase='RUNNING')",
        "Job.objects.filter(pk=1).update(phase='RUNNING')",
        "def f():\n    changes = {'phase': 'RUNNING'}\n    rows.update(**changes)",
    ],
)
def test_every_way_to_assign_a_phase_is_seen(text: str):
    assert assigns_a_phase(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "job.phase == 'RUNNING'",
        "rows.filter(phase='QUEUED').update(reason='')",
        "TaskFact.objects.filter(pk=1).update(phase='RELEASED')",
    ],
)
def test_reading_a_phase_is_free(text: str):
    assert not assigns_a_phase(ast.parse(text))
