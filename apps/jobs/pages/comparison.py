"""Several jobs side by side: what they are, what they asked for, where they differ, and what their scalars came to.

Not here: their curves, which the page draws from the API, point by point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max, Min, OuterRef, Q, QuerySet, Subquery

from apps.jobs.explanations.row_words import Row, rows_of, shorten
from apps.jobs.models import Job, ScalarPoint
from yardmaster.job.spec import USUAL_PATHS, Paths
from yardmaster.job.spec_stored import PINNED
from yardmaster.quantity import exact_bytes, format_cpu, format_duration

MOST_JOBS = 20
MOST_TAGS = 200
MOST_CHOSEN = 6
MOST_CURVES = 200
_ABSENT = "–"
_PATHS = Paths()
_OF_INPUT = ("mode", "share", "stands_for", "source")
_SECONDS = ("max_runtime", "grace_period", "reclaim_delay", "hold_failed")
_USUAL = ("loss", "accuracy", "acc")


@dataclass(frozen=True)
class Line:
    """One thing of every job."""

    title: str
    cells: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.cells)) > 1


@dataclass(frozen=True)
class CurveEnd:
    """What one curve came to. `job` is what to call its job."""

    job: str
    run: str
    last: str
    last_step: int
    lowest: str
    highest: str


@dataclass(frozen=True)
class Scalar:
    """One tag, with the curves that the jobs have of it."""

    tag: str
    curves: list[CurveEnd]


@dataclass(frozen=True)
class Comparison:
    """Everything but the points."""

    rows: list[Row]
    spec: list[Line]
    tags: list[str]
    scalars: list[Scalar]

    @property
    def differences(self) -> int:
        return sum(1 for line in self.spec if line.differs)


def compare(
    jobs: Sequence[Job],
    specs: Sequence[Mapping[str, Any]],
    *,
    chosen: Sequence[str],
    names: Mapping[str, str],
    now: datetime,
) -> Comparison:
    """The jobs side by side, with these scalars (none: the likeliest one). `specs` are theirs, in the same order;
    `names` says what to call versions by id."""
    tags = tags_of(jobs)
    wanted = [tag for tag in tags if tag in chosen][:MOST_CHOSEN] or _likeliest(tags)
    return Comparison(rows_of(jobs, now), spec_lines(specs, names), tags, _scalars(jobs, wanted))


def spec_lines(specs: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> list[Line]:
    """Every setting that any of the specifications has, in the order of the form, with each one's value. Pure."""
    flat = [_flat(spec, names) for spec in specs]
    titles: dict[str, None] = {}
    for one in flat:
        titles |= dict.fromkeys(one)
    titles = {one: None for one in titles if not (one.startswith("paths ") and _is_default(one, flat))}
    order = sorted(titles, key=lambda title: _ORDER.index(title.partition(" ")[0]))
    return [Line(title, tuple(one.get(title, _ABSENT) for one in flat)) for title in order]


def _is_default(title: str, flat: Sequence[Mapping[str, str]]) -> bool:
    """Whether every job that has this path has what everybody has: it would only lengthen the table."""
    key = title.partition(" ")[2]
    usual = {getattr(one, key, "") or _ABSENT for one in (_PATHS, USUAL_PATHS)}
    usual |= {_ABSENT} if key.endswith("_flag") else set()
    found = {one[title] for one in flat if title in one}
    return len(found) <= 1 and found <= usual


def labels_of(jobs: Sequence[Job]) -> list[str]:
    """What to call each job: its name, with the end of its id where another one has the same."""
    counts = Counter(job.name for job in jobs)
    return [job.name if counts[job.name] == 1 else f"{shorten(job.name, 60)} …{job.pk.hex[-4:]}" for job in jobs]


def tags_of(jobs: Sequence[Job]) -> list[str]:
    """The scalars that any of the jobs has written in its current attempt."""
    found = _points(jobs).values_list("tag", flat=True).distinct().order_by("tag")
    return list(found[:MOST_TAGS])


_ORDER = (
    "strategy", "roles", "code", "entry_point", "command", "parameter", "tf1", "image", "argument", "variable", "input",
    "secret", "retries", "max_runtime", "grace_period", "reclaim_delay", "hold_failed", "priority", "priority_class",
    "success", "log_dir", "checkpoint_store", "paths",
)  # fmt: skip


def _flat(spec: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    found = {"strategy": str(spec.get("strategy", ""))}
    pinned = {
        one["name"]: f"{one['name']} ({one['reference'].rpartition('@')[2][:19]})" for one in spec.get(PINNED, [])
    }
    for role, one in spec.get("roles", {}).items():
        said = one | {"image": pinned.get(one.get("image", ""), one.get("image", ""))}
        found |= {
            f"roles {role} {key}": _amount(key, value) for key, value in said.items() if value not in ({}, 0, None, "")
        }
    if image := spec.get("image"):
        found["image"] = pinned.get(image, image)
    if code := spec.get("code"):
        found |= {"code": names.get(str(code), str(code)), "entry_point": str(spec.get("entry_point", ""))}
    found |= {key: str(value) for key in ("command", "tf1", "priority_class") if (value := spec.get(key))}
    found |= {f"parameter {name}": str(value) for name, value in spec.get("parameters", {}).items()}
    found |= _arguments(spec.get("arguments", []))
    found |= {f"variable {name}": value for name, value in spec.get("environment", {}).items()}
    for number, one in enumerate(spec.get("inputs", [])):
        version = str(one.get("dataset_version") or one.get("model_version", ""))
        found[f"input {one.get('name') or number}"] = names.get(version, version)
        found |= {f"input {one.get('name') or number} {key}": one[key] for key in _OF_INPUT if one.get(key)}
    found |= {f"secret {one.get('name')}": _secret(one) for one in spec.get("secrets", [])}
    if connection := spec.get("connection"):
        found |= {"connection": str(connection.get("name")), "cache": str(connection.get("cache", ""))}
    found |= {key: str(spec[key]) for key in ("retries", "priority") if key in spec}
    found |= {key: "no limit" if spec[key] is None else format_duration(spec[key]) for key in _SECONDS if key in spec}
    if success := spec.get("success"):
        found["success"] = f"{success.get('rule')} {success.get('percent')} %"
    found |= {key: spec[key] for key in ("log_dir", "checkpoint_store") if key in spec}
    return found | {f"paths {key}": value or _ABSENT for key, value in spec.get("paths", {}).items()}


def _secret(one: Mapping[str, str]) -> str:
    """Where tasks find the value; the value itself is in no specification."""
    return ", ".join(f"{key} {one[key]}" for key in ("env", "file") if one.get(key))


def _amount(key: str, value: Any) -> str:
    if key == "memory" and isinstance(value, int):
        return exact_bytes(value)
    if key == "cpu" and isinstance(value, (int, float)):
        return format_cpu(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={amount}" for name, amount in value.items())
    return str(value)


def _arguments(arguments: Sequence[str]) -> dict[str, str]:
    """Flags by name, so that one that stands elsewhere is no difference; what repeats or is no flag by its place."""
    found: dict[str, str] = {}
    for number, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        title = f"argument {flag}" if flag.startswith("--") else f"argument {number + 1}"
        if title in found:
            title = f"{title} ({number + 1})"
        found[title] = (value if equals else "set") if flag.startswith("--") else argument
    return found


def _number(value: float | None) -> str:
    """Five digits, as the charts say it; what was no number is none."""
    return _ABSENT if value is None else f"{value:.5g}"


def _points(jobs: Sequence[Job]) -> QuerySet[ScalarPoint]:
    mine = Q(pk__in=[])
    for job in jobs:
        mine |= Q(job=job, attempt=job.attempt)
    return ScalarPoint.objects.filter(mine)


def _likeliest(tags: Sequence[str]) -> list[str]:
    for word in _USUAL:
        for tag in tags:
            if word in tag.lower():
                return [tag]
    return list(tags[:1])


def _scalars(jobs: Sequence[Job], tags: Sequence[str]) -> list[Scalar]:
    if not tags:
        return []
    own = ["job_id", "attempt", "run", "tag"]
    same = ScalarPoint.objects.filter(**{name: OuterRef(name) for name in own})
    ends = (
        _points(jobs)
        .filter(tag__in=tags)
        .values(*own)
        .annotate(
            lowest=Min("value"),
            highest=Max("value"),
            last_step=Max("step"),
            last=Subquery(same.order_by("-step").values("value")[:1]),
        )
        .order_by(*own)[:MOST_CURVES]
    )
    labels = dict(zip((job.pk for job in jobs), labels_of(jobs), strict=True))
    place = {job.pk: number for number, job in enumerate(jobs)}
    found: dict[str, list[CurveEnd]] = {tag: [] for tag in tags}
    for end in sorted(ends, key=lambda end: (place[end["job_id"]], end["run"])):
        last, lowest, highest = (_number(end[name]) for name in ("last", "lowest", "highest"))
        label, run = labels[end["job_id"]], _run_words(end["run"])
        found[end["tag"]].append(CurveEnd(label, run, last, end["last_step"], lowest, highest))
    return [Scalar(tag, curves) for tag, curves in found.items()]


def _run_words(run: str) -> str:
    """The folder of the events below the log directory; the directory itself has no name of its own."""
    return _ABSENT if run in ("", ".") else run
