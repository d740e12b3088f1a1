"""What a job is: the frozen `TrainingSpec` and its parts. Not here: how it is read from JSON (`spec_json`), which specs
are valid (`spec_rules`), what a role means to a strategy (`strategy`).

Units everywhere: cpu in cores (a float, 0.001 steps), memory in bytes, durations in `timedelta`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from yardmaster.job.spec_images import PinnedImage
from yardmaster_runner.patience import upload_stall, upload_time, uploads_end

VERSION = 1
"""The version of the JSON form. A reader accepts this one and says so of any other."""


class Strategy(StrEnum):
    """How the tasks of a job work together."""

    SINGLE = "single"
    BETWEEN_GRAPH = "between_graph"
    PARAMETER_SERVER = "parameter_server"
    MULTI_WORKER_MIRRORED = "multi_worker_mirrored"
    IN_GRAPH = "in_graph"
    BATCH = "batch"
    SERVICE = "service"
    SPARK = "spark"


UPLOADS_NOTHING = frozenset({Strategy.IN_GRAPH, Strategy.SERVICE})
"""Strategies whose tasks leave nothing to be kept: being stopped, they end at once."""


class Role(StrEnum):
    """What a task does. The values are TF_CONFIG's `task.type` words, but for the two of a Spark application."""

    CHIEF = "chief"
    WORKER = "worker"
    PS = "ps"
    EVALUATOR = "evaluator"
    DRIVER = "driver"
    EXECUTOR = "executor"


def known_role(name: str) -> Role | None:
    """The role of a stored name; None where another release wrote it and this one does not know it."""
    try:
        return Role(name)
    except ValueError:
        return None


Option = str | int | float | bool
"""The value of an option of a program (`programs`)."""


class SuccessRule(StrEnum):
    """Which workers must end well for the job to have succeeded.

    `CHIEF`: the chief, or worker 0 where there is no chief role. `WORKERS`: `success_percent` of the workers (and the
    chief, where there is one).
    """

    CHIEF = "chief"
    WORKERS = "workers"


def _frozen(value: Mapping[str, int] | Mapping[str, str] | Mapping[str, Option]) -> Mapping:  # type: ignore[type-arg]
    return MappingProxyType(dict(sorted(value.items())))


DEFAULT_MEMORY = 3 << 29
"""1.5 GiB: `import keras` alone takes 0.6 GiB, and a small `fit` 0.75."""


@dataclass(frozen=True)
class Resources:
    """What one task asks for. `extended` holds other countable resources by name (`rdma/hca`: 1)."""

    cpu: float = 1.0
    memory: int = DEFAULT_MEMORY
    gpus: int = 0
    extended: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extended", _frozen(self.extended))

    def __hash__(self) -> int:
        return hash((self.cpu, self.memory, self.gpus, tuple(self.extended.items())))

    def __add__(self, other: Resources) -> Resources:
        names = {*self.extended, *other.extended}
        return Resources(
            cpu=round(self.cpu + other.cpu, 3),
            memory=self.memory + other.memory,
            gpus=self.gpus + other.gpus,
            extended={name: self.extended.get(name, 0) + other.extended.get(name, 0) for name in names},
        )

    def __mul__(self, times: int) -> Resources:
        return Resources(
            cpu=round(self.cpu * times, 3),
            memory=self.memory * times,
            gpus=self.gpus * times,
            extended={name: amount * times for name, amount in self.extended.items()},
        )

    def as_amounts(self) -> dict[str, float]:
        """Every resource by its quota name: `cpu`, `memory`, `gpus`, and the extended ones under their own."""
        return {"cpu": self.cpu, "memory": self.memory, "gpus": self.gpus, **self.extended}


NOTHING = Resources(cpu=0.0, memory=0, gpus=0)


@dataclass(frozen=True)
class RoleSpec:
    """How many tasks of a role there are and what each asks for."""

    replicas: int = 1
    resources: Resources = Resources()
    image: str = ""
    """Beats that of the job."""


class InputMode(StrEnum):
    """How the files of an input reach a task. `FOLDER`: all of them before the script starts. `STREAM`: TFRecord shards
    while the script reads them (`yardmaster_runner.data`), everything else before it starts."""

    FOLDER = "folder"
    STREAM = "stream"


class InputShare(StrEnum):
    """Which shards of an input a task that trains reads: `ALL` of them, or a part of its own (`SHARDS`)."""

    ALL = "all"
    SHARDS = "shards"


class InputSource(StrEnum):
    """Where the tasks read an input: fetched from the object `STORE`, or in place on the data `VOLUME` of the job's
    namespace (`volumes`), to which the version was published before."""

    STORE = "store"
    VOLUME = "volume"


class LogDir(StrEnum):
    """Where the log directory of the tasks lies: on the `DISK` that each has for itself, or on the log `VOLUME` of the
    job's namespace, where the tasks of an attempt share one."""

    DISK = "disk"
    VOLUME = "volume"


class CheckpointStore(StrEnum):
    """Where checkpoints and outputs (event files among them) of the tasks are kept: in the portal's own store, or in
    its store in Apache Ignite."""

    PORTAL = "portal"
    IGNITE = "ignite"


@dataclass(frozen=True)
class DatasetInput:
    """A version of a dataset, or of a model, that every task finds under `<data dir>/<name>` (one unnamed input:
    `<data dir>` itself)."""

    dataset_version: uuid.UUID | None
    """None: it is a model's."""
    name: str = ""
    mode: InputMode = InputMode.FOLDER
    share: InputShare = InputShare.ALL
    model_version: uuid.UUID | None = None
    stands_for: str = ""
    """An `s3://` path: what scripts read below it through fsspec is read from this input instead."""
    source: InputSource = InputSource.STORE

    @property
    def version(self) -> uuid.UUID:
        """Whichever it is."""
        found = self.dataset_version or self.model_version
        if found is None:
            raise ValueError("an input names a version")
        return found


@dataclass(frozen=True)
class SecretInput:
    """A secret of the job's namespace, by name, and how tasks get its value: in the variable `env`, or in the file
    `file` of the secrets folder. With both, the variable holds the file's path."""

    name: str
    env: str = ""
    file: str = ""


@dataclass(frozen=True)
class ConnectionInput:
    """A data connection of the job's namespace, by name, whose cluster the script reads (`IGNITE_DATASET_…`), and the
    cache that it reads where the script names none."""

    name: str
    cache: str = ""


@dataclass(frozen=True)
class SparkInput:
    """A Spark cluster that administrators have registered, by name, and what of it the job's application takes: so many
    executors, each with so many cores and so much memory (`spark.executor.memory`)."""

    cluster: str
    executors: int = 2
    cores: int = 1
    memory: int = 1 << 30

    @property
    def all_cores(self) -> int:
        return self.executors * self.cores


AUTO = "auto"
"""In the place of a flag: that which the script's own parser knows. It is decided at the launch
(`yardmaster.code.path_flags`), so that no job with a script has it."""


@dataclass(frozen=True)
class Paths:
    """How the script learns where things are. An empty flag or variable is not set at all.

    The data directory holds the inputs; the log directory is shared by all tasks and holds checkpoints and event
    files; what the script leaves in the model directory is kept as the job's model. The output directory is there where
    the job publishes what is written into it (`Publishes`). One flag for logs and the model is one directory: the log
    directory, in which complete models are found and kept.
    """

    data_flag: str = AUTO
    log_flag: str = AUTO
    model_flag: str = AUTO
    output_flag: str = ""
    data_env: str = "DATA_DIR"
    log_env: str = "LOG_DIR"
    model_env: str = "MODEL_DIR"
    output_env: str = "OUTPUT_DIR"


USUAL_PATHS = Paths("--data_dir", "--log_dir", "")
"""What is passed where the script's flags cannot be found out, and what earlier releases passed."""


@dataclass(frozen=True)
class Publishes:
    """Once the job has succeeded, what all of its tasks left in their output directories is one version of the dataset
    of this name in the job's namespace, which is created where there is none."""

    dataset: str
    note: str = ""


def time_to_end(grace: timedelta) -> timedelta:
    """Between SIGTERM to a task and SIGKILL to all of it, for this grace period of its script. A runner ends long
    before where nothing is uploaded, or nothing of it arrives (`yardmaster_runner.patience`)."""
    return grace + timedelta(seconds=upload_time(grace.total_seconds()))


def time_to_restart(grace: timedelta) -> timedelta:
    """The same for a task that is to start again: it holds the others up, so its uploads have only the time for which
    they may stand still."""
    return grace + timedelta(seconds=upload_stall(grace.total_seconds()))


@dataclass(frozen=True)
class TrainingSpec:
    """One distributed training run, the same on every engine. Immutable and comparable."""

    name: str
    strategy: Strategy
    roles: Mapping[Role, RoleSpec]
    code_version: uuid.UUID | None
    """None where no script of the user runs (`in_graph`, `program`); then `entry_point` is empty, too. A program
    may have code beside it."""
    entry_point: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[DatasetInput, ...] = ()
    secrets: tuple[SecretInput, ...] = ()
    """Names alone: a value is in no specification."""
    connection: ConnectionInput | None = None
    spark: SparkInput | None = None
    """Where the executors of a Spark application run. None: they are tasks of the job."""
    paths: Paths = Paths()
    model_name: str = ""
    """The model of which the job's export becomes a version; empty: the one that is called like the job."""
    retries: int = 3
    """How many restarts the attempt may spend, all tasks together, before a failure is the job's."""
    max_runtime: timedelta | None = None
    """From the attempt's start; the job fails with `DeadlineExceeded` when it is over."""
    grace_period: timedelta = timedelta(seconds=30)
    """What the script has between SIGTERM and SIGKILL, to save a checkpoint and to write an export."""
    reclaim_delay: timedelta = timedelta(seconds=30)
    """From the verdict until the tasks that never end by themselves are released."""
    hold_failed: timedelta = timedelta(0)
    """How long each task whose script fails stays open for terminals before it ends; nothing where it was stopped."""
    priority: int = 0
    priority_class: str = ""
    """The name of a class that gives the priority; empty: `priority` is the number that was said."""
    success_rule: SuccessRule = SuccessRule.WORKERS
    success_percent: int = 100
    program: str = ""
    """A program of the portal's own (`programs`) in the place of the script, with its `options`."""
    options: Mapping[str, Option] = field(default_factory=dict)
    publishes: Publishes | None = None
    requirements: tuple[str, ...] | None = None
    """Packages that tasks install before the script starts, as pip writes them. None: those that the code names in its
    `requirements.txt` or `pyproject.toml`. Empty: none."""
    log_dir: LogDir = LogDir.DISK
    checkpoint_store: CheckpointStore = CheckpointStore.PORTAL
    command: str = ""
    """A shell command line in the place of `entry_point` and `arguments`."""
    parameters: Mapping[str, Option] = field(default_factory=dict)
    """Variables that a notebook gets in a cell of its own."""
    tf1: bool = False
    """Whether `import tensorflow` in the job's code gives TensorFlow 1's names."""
    image: str = ""
    """The name of an image of the portal's catalogue; empty: the engine's own image."""
    pinned_images: tuple[PinnedImage, ...] = ()
    """What the named images were at the launch. Written by the portal alone: it is in the stored form, and not in the
    JSON that people send."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _frozen(self.options))
        object.__setattr__(self, "parameters", _frozen(self.parameters))
        object.__setattr__(self, "roles", MappingProxyType({r: self.roles[r] for r in Role if r in self.roles}))
        object.__setattr__(self, "environment", _frozen(self.environment))

    def __hash__(self) -> int:
        return hash((self.name, self.strategy, tuple(self.roles.items()), self.code_version, self.entry_point))

    @property
    def time_to_end(self) -> timedelta:
        """Between SIGTERM to a task and SIGKILL to all of it: the script's grace period, and then the most that its
        runner may take to upload what the script wrote. Servers without a script upload nothing."""
        return self.grace_period if self.strategy in UPLOADS_NOTHING else time_to_end(self.grace_period)

    @property
    def time_to_restart(self) -> timedelta:
        """The same for a task that is to start again."""
        return self.grace_period if self.strategy in UPLOADS_NOTHING else time_to_restart(self.grace_period)

    def end_by(self, asked_at: datetime, uploading_at: datetime | None) -> datetime:
        """When tasks that were asked to stop at `asked_at` have ended, or never will by themselves. `uploading_at`:
        when one of them last said that it uploads; None: none did. A runner that uploads says so every few seconds."""
        if self.strategy in UPLOADS_NOTHING:
            return asked_at + self.grace_period
        moved = 0.0 if uploading_at is None else (uploading_at - asked_at).total_seconds()
        return asked_at + timedelta(seconds=uploads_end(0.0, self.grace_period.total_seconds(), moved))

    def replicas(self, role: Role) -> int:
        """How many tasks of `role` there are; 0 when the spec has none."""
        return self.roles[role].replicas if role in self.roles else 0

    def image_of(self, role: Role) -> PinnedImage | None:
        """The image that the tasks of `role` run in; None: the engine's own, or the spec was not launched yet."""
        name = (self.roles[role].image if role in self.roles else "") or self.image
        return next((one for one in self.pinned_images if name and one.name == name), None)

    def tasks(self) -> list[tuple[Role, int]]:
        """Every (role, index) of the job, chief first, in a fixed order."""
        return [(role, index) for role, one in self.roles.items() for index in range(one.replicas)]

    def total(self, roles: frozenset[Role] | None = None) -> Resources:
        """What all tasks (of `roles`, or of every role) ask for together."""
        amount = NOTHING
        for role, one in self.roles.items():
            if roles is None or role in roles:
                amount += one.resources * one.replicas
        return amount
