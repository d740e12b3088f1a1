"""All namespaces with what each holds and may hold, as one table: filtered, sorted and read page by page.

A fixed number of statements, however many namespaces there are: what is sorted by is a sum over other tables, so that
all are read and sorted here. Not here: changing limits (`quota_bulk`).
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.db.models import Count, OuterRef, Q, Subquery, Sum
from django.db.models.functions import JSONObject

from apps.administration.usage import COUNTED, plain
from apps.errors import Invalid
from apps.jobs.models import Job, Reservation
from apps.jobs.state.ledger import ADMITTED
from apps.namespaces.models import QUANTITY_NAMES, Namespace, Quota, ScheduledQuota, default_limits, kind_of, limits_of
from apps.uploads.models import StorageAccount
from apps.workbench.session_quota import sessions_by_namespace
from yardmaster.errors import Problem
from yardmaster.lifecycle import phases

HIGH = 0.8
"""The part of a limit above which a namespace is listed as nearly full."""
KINDS = {"": "All", "team": "Teams", "personal": "Personal", "over": "Over 80 %"}
MEASURES = ("used", "reserved", "hard", "share")
LONGEST_SEARCH = 100


@dataclass(frozen=True)
class Column:
    """One resource. `key`: a field of the quota, or the name of another resource."""

    key: str
    label: str
    unit: str = ""


@dataclass(frozen=True)
class Cell:
    """`used`: by jobs that run. `reserved`: by jobs that have their resources and do not run yet; of storage, by
    uploads that are under way. Both count against the limit. `hard` None: unlimited."""

    used: float
    reserved: float
    hard: float | None

    @property
    def held(self) -> float:
        """What counts against the limit; cores to a thousandth, as they are asked for."""
        return round(self.used + self.reserved, 3)

    @property
    def is_above(self) -> bool:
        """Whether more is held than the limit allows: it was lowered."""
        return self.hard is not None and self.held > self.hard

    @property
    def share(self) -> float:
        """How much of the limit is taken; above 1 where it was lowered. 0 where there is no limit."""
        if self.hard is None:
            return 0.0
        return self.held / self.hard if self.hard else float(self.held > 0) * 2


@dataclass(frozen=True)
class Row:
    """A namespace; `cells` by the keys of the columns. `changed_until`: when the last of the scheduled changes in force
    ends; `changes_from`: when the next to come begins."""

    pk: uuid.UUID
    slug: str
    title: str
    is_personal: bool
    cells: Mapping[str, Cell]
    quota: Quota
    changed_until: datetime | None
    changes_from: datetime | None

    @property
    def is_high(self) -> bool:
        """Whether it takes more than 80 % of any of its limits."""
        return any(one.share > HIGH for one in self.cells.values())


@dataclass(frozen=True)
class Wanted:
    """Which rows, in which order. `sort`: `name`, or a column's key with `.used`, `.reserved`, `.hard` or `.share` (the
    part of the limit that is held); `-` before it: the largest first."""

    search: str = ""
    kind: str = ""
    sort: str = "name"

    @property
    def sort_key(self) -> tuple[str, str]:
        """The column and what of it is compared."""
        key, _, measure = self.sort.removeprefix("-").rpartition(".")
        return (key, measure) if measure in MEASURES else (self.sort.removeprefix("-"), "")


@dataclass(frozen=True)
class Table:
    """`rows`: all that match, sorted."""

    columns: list[Column]
    rows: list[Row]


def wanted_of(values: Mapping[str, str]) -> Wanted:
    """The filters of an address. Raises `Invalid` for a kind that there is not."""
    kind = values.get("kind", "")
    if kind not in KINDS:
        remedy = f"Use one of {', '.join(filter(None, KINDS))}, or omit it."
        raise Invalid([Problem("kind", "invalid", "There is no such kind of namespaces.", remedy, kind[:100])])
    return Wanted(values.get("search", "").strip()[:LONGEST_SEARCH], kind, values.get("sort") or "name")


def quota_table(wanted: Wanted) -> Table:
    """The namespaces that match, in order. Five statements. Raises `Invalid` where no column is called as `sort` says.

    Closed namespaces are left out: nothing begins in them.
    """
    rows = _rows(wanted)
    columns = _columns(rows)
    if wanted.kind == "over":
        rows = [one for one in rows if one.is_high]
    return Table(columns, _sorted(rows, columns, wanted))


def rows_of(ids: list[uuid.UUID]) -> list[Row]:
    """The rows of these namespaces, by name; those that are closed or gone are left out."""
    return sorted(_read(Namespace.objects.filter(pk__in=ids)), key=lambda one: one.slug)


def _rows(wanted: Wanted) -> list[Row]:
    found = Namespace.objects.all()
    if wanted.search:
        found = found.filter(slug__icontains=wanted.search)
    if wanted.kind in ("team", "personal"):
        found = found.filter(owner__isnull=wanted.kind == "team")
    return _read(found)


def _read(namespaces: Any) -> list[Row]:
    (held, starting), jobs, sessions = _held(), _jobs(), sessions_by_namespace()
    plans = ScheduledQuota.objects.filter(namespace=OuterRef("pk"), over_at=None)
    found = list(
        namespaces.filter(closed_at=None)
        .select_related("quota")
        .annotate(
            changed_until=Subquery(plans.exclude(begun_at=None).order_by("-ends_at").values("ends_at")[:1]),
            stored=_stored(),
            changes_from=Subquery(plans.filter(begun_at=None).order_by("starts_at").values("starts_at")[:1]),
        )
        .order_by("slug")
    )
    if missing := [one for one in found if getattr(one, "quota", None) is None]:
        defaults = default_limits()
        for one in missing:
            one.quota = Quota(namespace=one, **defaults[kind_of(one)])
    nothing: dict[str, float] = {}
    return [
        _row(
            one,
            held.get(one.pk, nothing),
            starting.get(one.pk, nothing),
            jobs.get(one.pk, nothing) | (one.stored or nothing) | {"sessions": sessions.get(one.pk, 0)},
        )
        for one in found
    ]


def _row(namespace: Any, held: Mapping[str, float], starting: Mapping[str, float], counted: dict[str, float]) -> Row:
    """`held`: all that its jobs hold; `starting`: what those of them hold that do not run yet."""
    quota = namespace.quota
    reserved = {**starting, "storage": counted.pop("reserved", 0), "running_jobs": counted.pop("starting_jobs", 0)}
    used = {name: round(amount - starting.get(name, 0), 3) for name, amount in held.items()} | counted
    cells = {
        name: Cell(used.get(name, 0), reserved.get(name, 0), plain(getattr(quota, name))) for name in QUANTITY_NAMES
    }
    others = {name for name, amount in held.items() if name not in COUNTED and amount}
    limits = limits_of(quota).limits(others)
    for name in sorted({*quota.extended, *others}):
        cells[name] = Cell(used.get(name, 0), reserved.get(name, 0), limits.get(name))
    return Row(
        namespace.pk, namespace.slug, namespace.title, namespace.owner_id is not None, cells, quota,
        namespace.changed_until, namespace.changes_from,
    )  # fmt: skip


def _columns(rows: list[Row]) -> list[Column]:
    named = sorted({name for row in rows for name in row.cells if name not in QUANTITY_NAMES})
    counted = [Column(key, label, unit) for key, (label, unit) in QUANTITY_NAMES.items()]
    return counted + [Column(name, name) for name in named]


def _sorted(rows: list[Row], columns: list[Column], wanted: Wanted) -> list[Row]:
    """Rows that are equal stay in the order of their names, whichever way is sorted."""
    is_down = wanted.sort.startswith("-")
    key, measure = wanted.sort_key
    if key == "name" and not measure:
        return rows[::-1] if is_down else rows
    if key not in {one.key for one in columns} or not measure:
        remedy = "Sort by name, or by a resource with .used, .reserved, .hard or .share: `-cpu.used`."
        raise Invalid([Problem("sort", "invalid", "There is no such column.", remedy, wanted.sort[:100])])
    return sorted(rows, key=_measured(key, measure), reverse=is_down)


def _measured(key: str, measure: str) -> Callable[[Row], float]:
    """A resource that the namespace has nothing of and no limit for counts as not used."""
    nothing = Cell(0, 0, None)

    def of(row: Row) -> float:
        cell = row.cells.get(key, nothing)
        if measure == "hard":
            return float("inf") if cell.hard is None else cell.hard
        return float(getattr(cell, measure))

    return of


Amounts = dict[uuid.UUID, dict[str, float]]
"""By namespace and resource."""


def _held() -> tuple[Amounts, Amounts]:
    """What admitted jobs hold; and the part of it of jobs that do not run yet. The database sums rows with equal names.
    One statement."""
    is_starting = Q(job_id__in=Job.objects.filter(phase=phases.Phase.STARTING.value).order_by().values("pk"))
    sums: dict[str, Any] = {}
    for name, only in (("all", None), ("starting", is_starting)):
        sums[f"{name}_rows"] = Count("pk", filter=only)
        sums |= {f"{name}_{column}": Sum(column, filter=only, default=0) for column in ("cpu", "memory", "gpus")}
    rows = Reservation.objects.filter(released_at__isnull=True).values("namespace_id", "extended")
    held: Amounts = defaultdict(lambda: defaultdict(float))
    starting: Amounts = defaultdict(lambda: defaultdict(float))
    for row in cast("Iterable[dict[str, Any]]", rows.annotate(**sums).order_by()):
        for name, found in (("all", held), ("starting", starting)):
            mine = found[row["namespace_id"]]
            for column in ("cpu", "memory", "gpus"):
                mine[column] += float(row[f"{name}_{column}"])
            for extended, amount in row["extended"].items():
                mine[extended] += amount * row[f"{name}_rows"]
    return held, starting


def _jobs() -> Amounts:
    """How many run, how many have their resources and do not run yet, and how many wait. One statement."""
    waiting = Q(phase=phases.Phase.QUEUED.value, wanted=phases.Wanted.RUN.value, deleted_at__isnull=True)
    starting = Q(phase=phases.Phase.STARTING.value)
    jobs = Job.objects.filter(Q(phase__in=ADMITTED) | waiting).order_by().values("namespace_id")
    counts = jobs.annotate(
        running_jobs=Count("pk", filter=Q(phase__in=ADMITTED) & ~starting),
        starting_jobs=Count("pk", filter=starting),
        queued_jobs=Count("pk", filter=waiting),
    )
    names = ("running_jobs", "starting_jobs", "queued_jobs")
    return {pk: dict(zip(names, found, strict=True)) for pk, *found in counts.values_list("namespace_id", *names)}


def _stored() -> Subquery:
    """Of each namespace: bytes used and reserved, those of logs, and files. Read with the namespaces."""
    rows = StorageAccount.objects.filter(namespace=OuterRef("pk"))
    return Subquery(rows.values(all=JSONObject(storage="used", reserved="reserved", files="files", logs="logs")))
