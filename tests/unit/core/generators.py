"""What the core's tests are made of: specs and observations, written out or drawn at random."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from yardmaster.job.spec import (
    ConnectionInput,
    DatasetInput,
    InputMode,
    InputShare,
    Paths,
    Resources,
    Role,
    RoleSpec,
    SecretInput,
    Strategy,
    SuccessRule,
    TrainingSpec,
)
from yardmaster.job.spec_spark import LEAST_TASK
from yardmaster.job.strategy import ROLES, never_ending_roles, only_serves
from yardmaster.lifecycle.phases import Observation, Refused, TaskPhase, TaskState
from yardmaster.queueing.placement import Tasks

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CODE = uuid.UUID("0193e5a4-7c1b-7abc-8def-0123456789ab")
DATA = uuid.UUID("0193e5a4-7c1b-7abc-8def-0123456789ac")
SHAPES: Mapping[Strategy, dict[Role, int]] = {
    Strategy.SINGLE: {Role.WORKER: 1},
    Strategy.BETWEEN_GRAPH: {Role.WORKER: 2, Role.PS: 1},
    Strategy.PARAMETER_SERVER: {Role.CHIEF: 1, Role.WORKER: 2, Role.PS: 1},
    Strategy.MULTI_WORKER_MIRRORED: {Role.WORKER: 2},
    Strategy.IN_GRAPH: {Role.WORKER: 2, Role.PS: 1},
    Strategy.BATCH: {Role.WORKER: 2},
    Strategy.SERVICE: {Role.WORKER: 1},
    Strategy.SPARK: {Role.DRIVER: 1, Role.EXECUTOR: 2},
}


def make_spec(
    strategy: Strategy = Strategy.BETWEEN_GRAPH,
    shape: Mapping[Role, int] | None = None,
    resources: Resources = Resources(),
    **fields: Any,
) -> TrainingSpec:
    """A valid spec; `shape` says how many tasks of which role."""
    roles = {role: RoleSpec(count, resources) for role, count in (shape or SHAPES[strategy]).items()}
    script = (None, "") if only_serves(strategy) else (CODE, "train.py")
    fields = {"name": "digits", "code_version": script[0], "entry_point": script[1], **fields}
    if strategy is Strategy.SERVICE:
        options, model = {"name": "digits", "version": "1"}, DatasetInput(None, model_version=DATA)
        fields = {"program": "model_server", "options": options, "inputs": (model,), **fields}
    return TrainingSpec(strategy=strategy, roles=roles, **fields)


def task(role: Role, index: int, phase: TaskPhase, **fields: Any) -> TaskState:
    return TaskState(role, index, phase, **fields)


def everything(spec: TrainingSpec, phase: TaskPhase, *others: TaskState) -> Observation:
    """Every task in one phase, but for `others`."""
    special = {(one.role, one.index): one for one in others}
    tasks = tuple(special.get(key, TaskState(*key, phase)) for key in spec.tasks())
    return Observation(exists=True, tasks=tasks)


_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
_path_part = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
_variable = st.from_regex(r"[B-Z][A-Z0-9_]{0,10}", fullmatch=True).filter(
    lambda name: name not in ("TF_CONFIG", "DATA_DIR", "LOG_DIR", "MODEL_DIR") and not name.startswith("YARDMASTER_")
)
_seconds = st.integers(0, 3600).map(lambda seconds: timedelta(seconds=seconds))


@st.composite
def resources(draw: st.DrawFn, least_memory: int = 64 << 20) -> Resources:
    return Resources(
        cpu=draw(st.integers(1, 8000)) / 1000,
        memory=draw(st.integers(least_memory, 8 << 30)),
        gpus=draw(st.integers(0, 4)),
        extended=draw(st.dictionaries(st.sampled_from(["rdma/hca", "vendor.example/fpga"]), st.integers(1, 4))),
    )


@st.composite
def shapes(draw: st.DrawFn, strategy: Strategy, most: int = 4) -> dict[Role, int]:
    found = {}
    for role, rule in ROLES[strategy].items():
        count = draw(st.integers(rule.least, min(most, rule.most or most)))
        if count:
            found[role] = count
    return found


@st.composite
def plain_specs(draw: st.DrawFn, most: int = 4) -> TrainingSpec:
    """Any valid spec as far as its life is concerned: strategy, shape, limits and success rule."""
    strategy = draw(st.sampled_from(Strategy))
    all_decide = only_serves(strategy) or strategy in (Strategy.BATCH, Strategy.SPARK)
    rule = SuccessRule.WORKERS if all_decide else draw(st.sampled_from(SuccessRule))
    has_percent = (
        rule is SuccessRule.WORKERS
        and strategy not in (Strategy.BATCH, Strategy.SPARK)
        and Role.WORKER not in never_ending_roles(strategy)
    )
    return make_spec(
        strategy,
        draw(shapes(strategy, most)),
        retries=draw(st.integers(0, 4)),
        max_runtime=draw(st.none() | st.integers(1, 7200).map(lambda seconds: timedelta(seconds=seconds))),
        grace_period=draw(_seconds),
        reclaim_delay=draw(_seconds),
        priority=draw(st.integers(-2, 2)),
        success_rule=rule,
        success_percent=draw(st.integers(1, 100)) if has_percent else 100,
    )


def _reading(strategy: Strategy) -> st.SearchStrategy[tuple[InputMode, InputShare]]:
    """How an input may be read with this strategy."""
    if strategy in (Strategy.PARAMETER_SERVER, Strategy.IN_GRAPH, Strategy.SERVICE, Strategy.SPARK):
        return st.just((InputMode.FOLDER, InputShare.ALL))
    return st.tuples(st.sampled_from(InputMode), st.sampled_from(InputShare))


def _stand_in(strategy: Strategy, name: str) -> st.SearchStrategy[str]:
    return st.just("") if only_serves(strategy) else st.sampled_from(["", f"s3://bucket/{name}"])


_paths = st.lists(_path_part, min_size=1, max_size=3).map("/".join)
_parameters = st.dictionaries(
    _variable, st.booleans() | st.integers(-9, 9) | _text | st.sampled_from([0.5, "1", "true"])
)
_images = st.sampled_from(["", "tensorflow-2.19", "a"])
_entries = st.one_of(
    st.fixed_dictionaries({"entry_point": _paths.map("{}.py".format), "tf1": st.booleans()}),
    st.fixed_dictionaries({"entry_point": _paths.map(lambda path: f"-m {path.replace('/', '.')}")}).filter(
        lambda one: all(map(str.isidentifier, one["entry_point"][3:].split(".")))
    ),
    st.fixed_dictionaries({"entry_point": _paths.map("{}.ipynb".format), "parameters": _parameters}),
    st.fixed_dictionaries(
        {"entry_point": st.just(""), "command": st.from_regex(r"[a-z](?:[ -~\n]{0,20}[a-z])?", fullmatch=True)}
    ),
)
"""What a job may run."""
_entries_of_spark = st.fixed_dictionaries({"entry_point": _paths.map("{}.py".format)})


@st.composite
def specs(draw: st.DrawFn) -> TrainingSpec:
    """Any valid spec, with all its texts and amounts."""
    plain = draw(plain_specs())
    script: dict[str, Any] = {}
    if not only_serves(plain.strategy):
        script |= draw(_entries_of_spark if plain.strategy is Strategy.SPARK else _entries)
        script["requirements"] = draw(
            st.sampled_from([None, (), ("pandas>=2", "rich[jupyter]==13.0; os_name == 'posix'")])
        )
        script["connection"] = draw(st.sampled_from([None, ConnectionInput("cats"), ConnectionInput("cats", "IMAGES")]))
        script["secrets"] = tuple(SecretInput("KEY", env=f"S_{n}_") for n in range(draw(st.integers(0, 2))))
        if "command" not in script:
            script["arguments"] = tuple(draw(st.lists(_text.filter(lambda one: not one.startswith("--")), max_size=3)))
    names = draw(st.lists(_path_part.map("data".__add__), max_size=3, unique=True))
    images = st.just("") if plain.strategy is Strategy.SERVICE else _images
    asked = resources(LEAST_TASK if plain.strategy is Strategy.SPARK else 64 << 20)
    return replace(
        plain,
        name=draw(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)),
        roles={role: RoleSpec(one.replicas, draw(asked), draw(images)) for role, one in plain.roles.items()},
        image=draw(images),
        **script,
        environment=draw(st.dictionaries(_variable, _text, max_size=3)),
        inputs=tuple(
            DatasetInput(DATA, name, *draw(_reading(plain.strategy)), stands_for=draw(_stand_in(plain.strategy, name)))
            for name in names
        )
        or plain.inputs,
        paths=draw(st.sampled_from([Paths(), Paths(data_flag="", log_env="", model_flag="--model_dir")])),
        priority=draw(st.integers(-1000, 1000)),
    )


@st.composite
def task_states(draw: st.DrawFn, role: Role, index: int) -> TaskState:
    phase = draw(st.sampled_from(TaskPhase))
    ended = phase in (TaskPhase.FAILED, TaskPhase.RELEASED)
    return TaskState(
        role,
        index,
        phase,
        reason=draw(st.sampled_from(["", "OutOfMemory", "ScriptFailed", "ImagePull", "NoSuchWord"])),
        message=draw(st.sampled_from(["", "as the engine says", "{braces}"])),
        exit_code=draw(st.none() | st.integers(-64, 255)) if ended else None,
        restarts=draw(st.integers(0, 3)),
        finished_at=draw(st.none() | st.integers(-5000, 5000).map(lambda s: NOW + timedelta(seconds=s))),
        peak_memory=draw(st.none() | st.integers(0, 1 << 40)),
    )


clocks = st.integers(-(10**7), 10**7).map(lambda seconds: NOW + timedelta(seconds=seconds))
refusals = st.builds(Refused, since=clocks, message=st.sampled_from(["", "0/2 nodes"]), is_growing=st.booleans())


@st.composite
def observations(draw: st.DrawFn, spec: TrainingSpec) -> Observation:
    """Anything an engine might show: tasks missing, out of order, of roles and indices that the spec does not have."""
    if draw(st.integers(0, 9)) == 0:
        return Observation(exists=False)
    keys = [*spec.tasks(), (Role.EVALUATOR, 7), (Role.PS, 99)]
    shown = draw(st.lists(st.sampled_from(keys), unique=True, max_size=len(keys)))
    tasks = tuple(draw(task_states(*key)) for key in shown)
    refused = draw(st.none() | refusals)
    said = draw(st.sampled_from(["", "held up"]))
    return Observation(True, tasks, said, to_restart=draw(st.booleans()), refused=refused)


def one_task(*sizes: Resources) -> tuple[Tasks, ...]:
    """A worker of each size."""
    return tuple(Tasks("worker", size, 1) for size in sizes)
