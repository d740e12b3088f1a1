"""What the portal orders this task to do, as frozen values. Read once per start; only read URLs are asked for again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple

from yardmaster_runner.cluster import BATCH, IN_GRAPH, SERVICE, SPARK
from yardmaster_runner.exits import STAGE_IN_FAILED, CannotRun
from yardmaster_runner.own_programs import MODULES
from yardmaster_runner.patience import AWAY_AFTER
from yardmaster_runner.spark.cluster import EXECUTOR
from yardmaster_runner.spark.registered import Registered, announced, of_order

ETAG = "etag:"
"""Before a store's ETag, in the place of a checksum."""


@dataclass(frozen=True)
class RemoteFile:
    """One file to fetch. `sha256` is empty where the portal does not know it; then only the size is checked, and the
    `etag` where the file lies in a bucket that others write to."""

    path: str
    size: int
    sha256: str
    url: str
    etag: str = ""


@dataclass(frozen=True)
class Bundle:
    """An immutable version of a dataset or of code: its id names its place in the cache."""

    version: str
    name: str
    files: Tuple[RemoteFile, ...]
    dataset: str = ""
    """What the dataset is called at the portal, where it is one."""
    is_streamed: bool = False
    """Its shards come when the script reads them."""
    is_divided: bool = False
    """Each task that trains reads a part of the shards."""
    stands_for: str = ""
    """The `s3://` path whose place it takes in scripts; may be empty."""
    is_on_volume: bool = False
    """Its files are read where they lie, on the data volume: none are named here."""
    next: str = ""
    """Where not empty, `files` are the first ones alone, and the others stand behind this path: they come by page."""

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class FilesPage:
    """Some files of a version, and the path behind which more stand."""

    files: Tuple[RemoteFile, ...]
    next: str


@dataclass(frozen=True)
class Secret:
    """A value for the variable `env`, or for the file `file` of the secrets folder; with both, the variable has the
    file's path. Shown without its value."""

    name: str
    env: str
    file: str
    value: str = field(repr=False)


@dataclass(frozen=True)
class Limits:
    line_bytes: int = 65536
    spool_bytes: int = 64 << 20
    away_seconds: float = AWAY_AFTER
    """How long the portal must not have answered before lines that do not fit into the spool are dropped."""
    stream_bytes: int = 10 << 30
    """Of shards that the tasks of a machine keep, all inputs together."""
    working_bytes: int = 2 << 30
    working_files: int = 2_000
    """Of files that the script writes in its working folder, what this task may keep."""


@dataclass(frozen=True)
class Size:
    """What each task of a role has: cores, and bytes of memory."""

    cpu: float
    memory: int


@dataclass(frozen=True)
class Order:
    """One task's order. The job specification's parts that matter inside a task are taken out of `spec`."""

    job: str
    attempt: int
    strategy: str
    entry_point: str
    arguments: Tuple[str, ...]
    environment: Mapping[str, str]
    paths: Mapping[str, str]
    replicas: Mapping[str, int]
    grace_period: float
    code: Optional[Bundle]
    """None where no script of the user runs."""
    inputs: Tuple[Bundle, ...]
    checkpoint: Optional[Bundle]
    limits: Limits
    program: str = ""
    """One of the portal's own programs (`own_programs`) in the place of a script, with its options."""
    options: Mapping[str, Any] = field(default_factory=dict)
    requirements: Optional[Tuple[str, ...]] = None
    """The packages that the script needs; None: those that its code names."""
    publishes: bool = False
    """What lies in the output folder at the end is uploaded."""
    secrets: Tuple[Secret, ...] = ()
    hold_failed: float = 0.0
    """Seconds for which the task stays open when its script has failed."""
    command: str = ""
    """A shell command line in the place of the entry point and its arguments."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Variables that a notebook gets."""
    tf1: bool = False
    """The script's `import tensorflow` is TensorFlow 1's API."""
    sizes: Mapping[str, Size] = field(default_factory=dict)
    """By role."""
    spark: Optional[Registered] = None
    """The Spark cluster that was there before the job."""
    agrees: bool = False
    """The tasks of this attempt may agree on something, by the portal."""
    was_cut_off: bool = False
    """The task has lines of an earlier start at the portal, which never said that they were all."""

    @property
    def runs_server(self) -> bool:
        """Whether the task is a plain TensorFlow server, in the place of a script."""
        return self.strategy == IN_GRAPH

    @property
    def is_service(self) -> bool:
        """Whether the portal connects to its port, for users."""
        return self.strategy == SERVICE

    @property
    def is_spark(self) -> bool:
        """Whether the tasks are a Spark cluster, whose driver is the script."""
        return self.strategy == SPARK

    def of_role(self, role: str) -> "Order":
        """What a task of this role is told. Executors of Spark publish nothing, so that they have no output folder of
        their own: what they write counts where it is below that of the driver."""
        return replace(self, publishes=False) if self.is_spark and role == EXECUTOR else self

    def at(self, address: str) -> "Order":
        """The same for a task that has this address: a driver announces it where none is registered."""
        if self.spark is None:
            return self
        return replace(self, spark=replace(self.spark, driver_address=announced(self.spark.driver_address, address)))

    @property
    def not_in_logs(self) -> List[Secret]:
        """The values that are taken out of the log: those of its secrets, and that of its Spark cluster."""
        value = "" if self.spark is None else self.spark.secret
        return [*self.secrets, *([Secret("of the Spark cluster", "", "", value)] if value else [])]

    @property
    def has_one_dir(self) -> bool:
        """Whether the script has one directory, by one flag, for its logs and its model."""
        return bool(self.paths["log_flag"]) and self.paths["log_flag"] == self.paths["model_flag"]

    def is_decided_by(self, role: str, index: int) -> bool:
        """Whether this task keeps the checkpoints and the model: the chief, or worker 0 where there is no chief; the
        driver of a Spark application. None does where the tasks are independent, or serve."""
        if self.strategy in (BATCH, SERVICE):
            return False
        leads = role == "worker" and index == 0 and not self.replicas.get("chief")
        return role in ("chief", "driver") or leads

    def part_of(self, role: str, index: int) -> Optional[Tuple[int, int]]:
        """Which part of how many this task reads of an input that is divided: the chief has the first one, the workers
        follow. None for a task that does not train: it reads all."""
        chiefs = self.replicas.get("chief", 0)
        if role not in ("chief", "worker"):
            return None
        return (index + (chiefs if role == "worker" else 0), chiefs + self.replicas.get("worker", 0))


AUTO = "auto"
DEFAULT_PATHS = {
    "data_flag": "--data_dir",
    "log_flag": "--log_dir",
    "model_flag": "",
    "output_flag": "",
    "data_env": "DATA_DIR",
    "log_env": "LOG_DIR",
    "model_env": "MODEL_DIR",
    "output_env": "OUTPUT_DIR",
}


def read_order(answer: Mapping[str, Any]) -> Order:
    """The order from the portal's JSON; `CannotRun` where it is not what the protocol says."""
    try:
        return _order(answer)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = "the portal's order is not understood (%s: %s)" % (type(error).__name__, error)
        raise CannotRun(STAGE_IN_FAILED, "StageInFailed", message) from error


def read_page(answer: Mapping[str, Any]) -> FilesPage:
    """The page from the portal's JSON; `CannotRun` as above."""
    try:
        return FilesPage(read_files(answer), next_of(answer))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = "the portal's list of files is not understood (%s: %s)" % (type(error).__name__, error)
        raise CannotRun(STAGE_IN_FAILED, "StageInFailed", message) from error


def _order(answer: Mapping[str, Any]) -> Order:
    spec = answer["spec"]
    limits = answer.get("limits") or {}
    return Order(
        job=str(answer["job"]),
        attempt=int(answer["attempt"]),
        strategy=str(spec["strategy"]),
        entry_point=str(spec.get("entry_point") or ""),
        arguments=tuple(str(one) for one in spec.get("arguments") or ()),
        environment={str(k): str(v) for k, v in (spec.get("environment") or {}).items()},
        paths=_paths(spec.get("paths") or {}),
        replicas={str(role): int(one.get("replicas", 1)) for role, one in spec["roles"].items()},
        grace_period=float(spec.get("grace_period", 30)),
        code=_bundle(answer["code"], "") if _has_code(answer) else None,
        inputs=tuple(_input(one) for one in answer.get("inputs") or ()),
        secrets=tuple(_secret(one) for one in answer.get("secrets") or ()),
        checkpoint=_checkpoint(answer) if answer.get("checkpoint") else None,
        limits=Limits(**{k: int(limits[k]) for k in Limits.__dataclass_fields__ if limits.get(k)}),
        program=_program(spec),
        options=dict(spec.get("options") or {}),
        requirements=_requirements(spec),
        publishes=bool(spec.get("publishes")),
        hold_failed=float(spec.get("hold_failed") or 0),
        command=str(spec.get("command") or ""),
        parameters=dict(spec.get("parameters") or {}),
        tf1=bool(spec.get("tf1")),
        sizes={str(role): _size(one) for role, one in spec["roles"].items()},
        spark=of_order(answer),
        agrees=bool(answer.get("agrees")),
        was_cut_off=bool(answer.get("was_cut_off")),
    )


def _size(role: Mapping[str, Any]) -> Size:
    return Size(float(role.get("cpu", 1)), int(role.get("memory", 0)))


def _paths(given: Mapping[str, Any]) -> Dict[str, str]:
    """What is left to the portal (`auto`) it decides for scripts alone: here are no flags that matter."""
    return {**DEFAULT_PATHS, **{str(k): str(v) for k, v in given.items() if v != AUTO}}


def _has_code(answer: Mapping[str, Any]) -> bool:
    """A script needs it; a program may have some beside it."""
    if answer["spec"].get("program"):
        return answer.get("code") is not None
    return bool(answer["spec"]["strategy"] != IN_GRAPH)


def _requirements(spec: Mapping[str, Any]) -> Optional[Tuple[str, ...]]:
    given = spec.get("requirements", ())  # an older portal has none
    return None if given is None else tuple(str(one) for one in given)


def _program(spec: Mapping[str, Any]) -> str:
    name = str(spec.get("program") or "")
    if name and name not in MODULES:
        raise ValueError("this runner has no program %r: it is older than the portal" % name)
    return name


def _secret(value: Mapping[str, Any]) -> Secret:
    return Secret(str(value["name"]), str(value.get("env") or ""), str(value.get("file") or ""), str(value["value"]))


def _checkpoint(answer: Mapping[str, Any]) -> Bundle:
    found = answer["checkpoint"]
    version = "checkpoint-%s-%d-%d" % (answer["job"], answer["attempt"], found["step"])
    return _bundle({**found, "version": version}, "the checkpoint of step %d" % found["step"])


def _input(value: Mapping[str, Any]) -> Bundle:
    return replace(
        _bundle(value, str(value.get("name") or "")),
        dataset=str(value.get("dataset") or ""),
        is_streamed=value.get("mode") == "stream",
        is_divided=value.get("share") == "shards",
        stands_for=str(value.get("stands_for") or ""),
        is_on_volume=value.get("source") == "volume",
    )


def _bundle(value: Mapping[str, Any], name: str) -> Bundle:
    return Bundle(version=str(value["version"]), name=name, files=read_files(value), next=next_of(value))


def read_files(value: Mapping[str, Any]) -> Tuple[RemoteFile, ...]:
    """The files of a bundle, or of a page of it."""
    return tuple(_file(one) for one in value["files"])


def next_of(value: Mapping[str, Any]) -> str:
    """The path behind which more files stand; empty: there are no more."""
    return str(value.get("next") or "")


def _file(value: Dict[str, Any]) -> RemoteFile:
    sha256, etag = str(value.get("sha256") or ""), ""
    if sha256.startswith(ETAG):
        sha256, etag = "", sha256[len(ETAG) :]
    return RemoteFile(
        path=str(value["path"]), size=int(value["size"]), sha256=sha256.lower(), url=str(value["url"]), etag=etag
    )
