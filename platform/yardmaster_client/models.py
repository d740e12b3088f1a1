"""What the portal answers, as frozen values. Fields that a newer portal adds are ignored; absent ones have defaults."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from yardmaster_client.notebook import job_as_html

T = TypeVar("T")


def read(kind: type[T], data: Mapping[str, Any]) -> T:
    """A `kind` from the portal's JSON: times become aware datetimes, nested values their own kind."""
    hints = _hints(kind)  # type: ignore[arg-type]  # every class can be hashed
    return kind(**{name: _value(hints[name], value) for name, value in data.items() if name in hints})


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind)}


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(one for one in get_args(hint) if one is not type(None))
    if hint is datetime:
        return datetime.fromisoformat(value)
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], one) for one in value)
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return read(hint, value)
    return value


@dataclass(frozen=True)
class Namespace:
    id: str
    slug: str
    title: str = ""
    role: str = ""
    personal: bool = False


@dataclass(frozen=True)
class Job:
    """A job and its current attempt. `phase` is QUEUED, STARTING, RUNNING, STOPPING, SUCCEEDED, FAILED or STOPPED."""

    id: str
    name: str
    phase: str
    wanted: str = ""
    attempt: int = 1
    strategy: str = ""
    engine: str = ""
    namespace: str = ""
    namespace_slug: str = ""
    owner: str = ""
    queue_state: str | None = None
    """Of a queued job: `waiting`, or `never_fits` where it can never start as limits and machines are now."""
    reason: str = ""
    message: str = ""
    remedy: str = ""
    position: int | None = None
    progress: dict[str, Any] | None = None
    replicas: dict[str, int] = field(default_factory=dict)
    """Tasks by role."""
    columns: dict[str, float | str | None] = field(default_factory=dict)
    """Of a list: the values of the columns that were asked for."""
    spec: dict[str, Any] = field(default_factory=dict)
    """Empty in a list: ask for the job by itself."""
    images: tuple[dict[str, Any], ...] = ()
    """The images that it runs in, as they were at its launch; only of a job that was asked for by itself."""
    serving: dict[str, Any] | None = None
    """Of `in_graph` while it is up, where its servers are; only of a job that was asked for by itself."""
    model: Any = None
    tags: tuple[str, ...] = ()
    note: str = ""
    """Empty in a list."""
    archived_at: datetime | None = None
    warnings: tuple[dict[str, Any], ...] = ()
    created_at: datetime | None = None
    queued_at: datetime | None = None
    admitted_at: datetime | None = None
    started_at: datetime | None = None
    decided_at: datetime | None = None
    released_at: datetime | None = None
    cleaned_up_at: datetime | None = None
    reclaim_at: datetime | None = None

    @property
    def is_final(self) -> bool:
        return self.phase in {"SUCCEEDED", "FAILED", "STOPPED"}

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return job_as_html(self)


@dataclass(frozen=True)
class LogLine:
    """One line of one task. `number` counts from 0 within the task; `time` is when the runner read it."""

    role: str
    index: int
    number: int
    time: datetime
    text: str


def read_line(row: Mapping[str, Any]) -> LogLine:
    """A line from the portal's JSON, which is short: there are many."""
    return LogLine(row["role"], row["index"], row["n"], datetime.fromtimestamp(row["t"] / 1000, UTC), row["text"])


@dataclass(frozen=True)
class LogGap:
    """Lines that no longer exist, and why in words: the task's spool was full while the portal was away, or a limit of
    the log was reached."""

    role: str
    index: int
    first: int
    count: int
    detail: str = ""


@dataclass(frozen=True)
class DatasetVersion:
    id: str
    number: int
    note: str = ""
    dataset: str = ""
    size: int = 0
    files: int | None = None
    records: int | None = None
    created_at: datetime | None = None

    @property
    def parent(self) -> str:
        """The id of what it is a version of."""
        return self.dataset


@dataclass(frozen=True)
class Dataset:
    id: str
    name: str
    namespace: str = ""
    namespace_slug: str = ""
    description: str = ""
    latest: DatasetVersion | None = None
    created_at: datetime | None = None


@dataclass(frozen=True)
class CodeVersion:
    id: str
    number: int
    note: str = ""
    code: str = ""
    git: dict[str, str] | None = None
    size: int = 0
    files: int | None = None
    created_at: datetime | None = None

    @property
    def parent(self) -> str:
        """The id of what it is a version of."""
        return self.code


@dataclass(frozen=True)
class Code:
    id: str
    name: str
    namespace: str = ""
    namespace_slug: str = ""
    description: str = ""
    latest: CodeVersion | None = None
    created_at: datetime | None = None


@dataclass(frozen=True)
class StoredFile:
    path: str
    size: int
    sha256: str = ""
    records: int | None = None
    url: str | None = None


@dataclass(frozen=True)
class Token:
    """A personal token without its secret. No scopes: it may do what its owner may."""

    id: str
    name: str
    scopes: tuple[str, ...] = ()
    created_at: datetime | None = None
    expires_at: datetime | None = None
    last_used_at: datetime | None = None


@dataclass(frozen=True)
class ModelVersion:
    """What one attempt of a job exported. `stage` is staging, production, archived or empty."""

    id: str
    number: int
    model: str = ""
    stage: str = ""
    size: int = 0
    files: int | None = None
    job: str = ""
    job_name: str = ""
    attempt: int = 1
    stopped: bool = False
    """It was written after the job was asked to stop."""
    source: dict[str, Any] = field(default_factory=dict)
    """What it was made of; empty in a list, like `metrics`."""
    metrics: tuple[dict[str, Any], ...] = ()
    contents: dict[str, Any] | None = None
    """What its files say of themselves; None in a list, and until they are read."""
    note: str = ""
    created_by: str | None = None
    created_at: datetime | None = None

    @property
    def parent(self) -> str:
        """The id of what it is a version of."""
        return self.model


@dataclass(frozen=True)
class StageChange:
    """A version was given a stage, or lost it."""

    version: int
    before: str
    after: str
    by: str | None = None
    at: datetime | None = None
    note: str = ""


@dataclass(frozen=True)
class Model:
    id: str
    name: str = ""
    namespace: str = ""
    namespace_slug: str = ""
    description: str = ""
    latest: ModelVersion | None = None
    deleted_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True)
class Output:
    """A file that a task wrote below its log directory. `url`: a signed address, or one of the portal's API."""

    path: str
    size: int = 0
    task: str = ""
    has_events: bool = False
    updated_at: datetime | None = None
    url: str = ""


@dataclass(frozen=True)
class Upload:
    """An open upload as the portal sees it."""

    id: str
    state: str
    part_size: int
    files: tuple[dict[str, Any], ...] = ()
    """None of one that has more than 20,000."""
    file_count: int = 0
    problem: dict[str, Any] | None = None
    expires_at: datetime | None = None
