"""The runner stands alone and the core never runs in a task; what both must say alike is pinned here."""

from __future__ import annotations

import ast
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import yardmaster_runner
from yardmaster.job.spec import USUAL_PATHS, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec_json import spec_to_json
from yardmaster.job.strategy import classic_flags, leading_task, only_serves, server_roles, task_environment
from yardmaster.lifecycle import failures
from yardmaster.lifecycle.failures import REASONS
from yardmaster_runner import exits
from yardmaster_runner.launch import SERVER_PROGRAM, Folders, command, environment
from yardmaster_runner.order import DEFAULT_PATHS, Order, read_order
from yardmaster_runner.reasons import explain_end, explain_end_of_server
from yardmaster_runner.settings import ROLES, Settings, read_settings

SOURCES = sorted(Path(yardmaster_runner.__file__).parent.rglob("*.py"))
SHAPES = [
    (Strategy.SINGLE, {Role.WORKER: 1}),
    (Strategy.BETWEEN_GRAPH, {Role.WORKER: 2, Role.PS: 2}),
    (Strategy.BETWEEN_GRAPH, {Role.CHIEF: 1, Role.WORKER: 2, Role.PS: 1}),
    (Strategy.PARAMETER_SERVER, {Role.CHIEF: 1, Role.WORKER: 2, Role.PS: 1, Role.EVALUATOR: 1}),
    (Strategy.MULTI_WORKER_MIRRORED, {Role.WORKER: 3}),
    (Strategy.MULTI_WORKER_MIRRORED, {Role.WORKER: 1}),
    (Strategy.MULTI_WORKER_MIRRORED, {Role.CHIEF: 1, Role.WORKER: 1, Role.EVALUATOR: 1}),
    (Strategy.BATCH, {Role.WORKER: 1}),
    (Strategy.BATCH, {Role.WORKER: 3}),
    (Strategy.IN_GRAPH, {Role.WORKER: 2, Role.PS: 1}),
    (Strategy.IN_GRAPH, {Role.CHIEF: 1, Role.WORKER: 1, Role.PS: 2}),
]


def spec_of(strategy: Strategy, shape: dict[Role, int]) -> TrainingSpec:
    return TrainingSpec(
        name="agree",
        strategy=strategy,
        roles={role: RoleSpec(count) for role, count in shape.items()},
        code_version=None if only_serves(strategy) else uuid.UUID(int=1),
        entry_point="" if only_serves(strategy) else "train.py",
        arguments=() if only_serves(strategy) else ("--steps=3",),
        environment={"TF_USE_LEGACY_KERAS": "0"},
    )


def order_of(spec: TrainingSpec) -> Order:
    """The order as the portal's JSON gives it to a task."""
    code = None if only_serves(spec.strategy) else {"version": "v", "files": []}
    order = {"job": "j", "attempt": 1, "spec": spec_to_json(spec), "code": code, "inputs": []}
    return read_order(json.loads(json.dumps(order)))


def settings_of(spec: TrainingSpec, role: Role, index: int) -> Settings:
    """The task's own view, as an engine gives it in variables."""
    return read_settings(
        {
            "YARDMASTER_URL": "http://portal",
            "YARDMASTER_TOKEN_FILE": "/token",
            "YARDMASTER_ROLE": role.value,
            "YARDMASTER_INDEX": str(index),
            "YARDMASTER_CLUSTER": json.dumps(cluster_of(spec)),
            "YARDMASTER_WORK_DIR": "/work-dir",
        }
    )


def cluster_of(spec: TrainingSpec) -> dict[str, list[str]]:
    return {role.value: [f"{role.value}-{n}:2222" for n in range(spec.replicas(role))] for role in server_roles(spec)}


@pytest.mark.parametrize(("strategy", "shape"), SHAPES)
def test_a_task_gets_the_flags_and_variables_that_the_core_foretells(
    strategy: Strategy, shape: dict[Role, int]
) -> None:
    spec = spec_of(strategy, shape)
    order, cluster = order_of(spec), cluster_of(spec)
    for role, index in spec.tasks():
        settings = settings_of(spec, role, index)
        folders = Folders.of(settings)
        given = environment(settings, order, folders, {})
        foretold = task_environment(spec, role, index, cluster)
        assert foretold.items() <= given.items()
        assert ("TF_CONFIG" in given) == ("TF_CONFIG" in foretold) == (len(spec.tasks()) > 1 and bool(cluster))
        assert given["TF_USE_LEGACY_KERAS"] == "0"
        flags = classic_flags(spec, cluster, role, index)
        words = command(settings, order, folders)
        assert [word for word in words if word in flags] == flags
        assert words[-1] == (SERVER_PROGRAM if only_serves(strategy) else "--steps=3")


@pytest.mark.parametrize(("strategy", "shape"), SHAPES)
def test_both_take_the_same_task_for_the_one_that_keeps_checkpoints(strategy: Strategy, shape: dict[Role, int]) -> None:
    spec = spec_of(strategy, shape)
    order = order_of(spec)
    leading = [] if strategy is Strategy.BATCH else [leading_task(spec)]
    assert [task for task in spec.tasks() if order.is_decided_by(task[0].value, task[1])] == leading


def test_roles_paths_and_exit_codes_are_the_same_words_on_both_sides() -> None:
    assert set(ROLES) == {role.value for role in Role}
    assert {key: getattr(USUAL_PATHS, key) for key in DEFAULT_PATHS} == DEFAULT_PATHS
    assert exits.PACKAGES_FAILED == failures.EXIT_PACKAGES_FAILED
    assert (exits.STAGE_IN_FAILED, exits.PORTAL_UNREACHABLE, exits.TOKEN_REFUSED, exits.NOT_PUBLISHED) == (
        failures.EXIT_STAGE_IN_FAILED,
        failures.EXIT_PORTAL_UNREACHABLE,
        failures.EXIT_TOKEN_REFUSED,
        failures.EXIT_NOT_PUBLISHED,
    )


def test_the_server_program_is_alone_in_its_folder_and_imports_nothing_of_the_runner() -> None:
    program = Path(SERVER_PROGRAM)
    assert [path.name for path in program.parent.iterdir() if path.suffix == ".py"] == ["serve.py"]
    assert "yardmaster_runner" not in program.read_text()


def reasons_in(tree: ast.AST) -> Iterator[str]:
    """Every constant that is given as the reason of an ending."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        given = [one.value for one in node.keywords if one.arg == "reason"]
        if name in ("CannotRun", "Ending"):
            given += node.args[1:2]
        yield from (one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str))


def test_the_runner_gives_no_reason_outside_the_vocabulary() -> None:
    given = {reason for path in SOURCES for reason in reasons_in(ast.parse(path.read_text()))} - {""}
    assert given >= {
        "StageInFailed",
        "CorruptInput",
        "TokenRefused",
        "PortalUnreachable",
        "ScriptNotFound",
        "OutOfMemory",
    }
    assert given <= REASONS.keys()


@pytest.mark.parametrize(
    "said",
    [
        "ModuleNotFoundError: No module named 'x'",
        "SyntaxError: invalid syntax",
        "MemoryError: no",
        "OSError: [Errno 28] No space left on device",
        "python: can't open file '/x': [Errno 2]",
        "ValueError: x",
        "",
    ],
)
@pytest.mark.parametrize("exit_code", [1, 2, 137, 139, 143])
def test_nor_does_it_for_any_end_of_a_script(said: str, exit_code: int) -> None:
    ending = explain_end(exit_code, said.encode(), False, False)
    assert ending.reason in REASONS
    assert explain_end_of_server(ending).reason in REASONS


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_every_file_of_the_runner_can_be_read_by_python_3_8_and_asks_for_nothing_of_the_core(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    for node in ast.walk(tree):
        modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not [one for one in modules if one.partition(".")[0] in ("yardmaster", "django", "apps", "portal")]
