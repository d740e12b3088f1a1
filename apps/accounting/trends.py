"""What the dashboard of administrators shows over time: use, what was held and used, failures by cause, waiting times.

Each is one statement or a few, over an index, and its rows are few: the database counts. Times are whole hours of the
last day, else whole days of UTC. Not here: which parameter servers are idle now, and what a reason is called
(`dashboards`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.db.models import Aggregate, Count, DateTimeField, DurationField, ExpressionWrapper, F, Max, Sum
from django.db.models.functions import TruncDay, TruncHour

from apps.accounting.models import IdleHour, MeasuredDay
from apps.accounting.sums import overlapping, seconds_of
from apps.accounting.use import columns_of, use
from apps.jobs.models import JobAttempt, Reservation
from apps.namespaces.models import Namespace
from yardmaster.accounting.amounts import CPU, GPUS, KIB, MEMORY, THOUSANDTHS, hours
from yardmaster.accounting.calendar import DAY, begin_of, day_of, days
from yardmaster.lifecycle.phases import Phase

HOUR = timedelta(hours=1)
PERIODS = {"day": ("24 hours", 1), "week": ("7 days", 7), "month": ("30 days", 30), "quarter": ("90 days", 90)}
BY = {"namespace": "Namespace", "role": "Role"}
MOST_WAITS = 20_000
"""Read one by one, where the database counts no percentiles."""
MOST_CAUSES = 500
Figures = dict[str, dict[date, Decimal]]


@dataclass(frozen=True)
class Scope:
    """Which time, and of what: a namespace by its short name, an engine, or (empty) all. Hours where `is_hourly`, else
    days."""

    begin: datetime
    end: datetime
    is_hourly: bool
    namespace: str = ""
    engine: str = ""

    def only(self) -> dict[str, Any]:
        """The lookups of those in the ledger and its sums, which have the name that the namespace had."""
        found = {"namespace_slug": self.namespace, "engine": self.engine}
        return {name: value for name, value in found.items() if value}

    def of_attempts(self) -> dict[str, Any]:
        """The same of attempts."""
        found = {"job__namespace__slug": self.namespace, "job__engine": self.engine}
        return {name: value for name, value in found.items() if value}

    @property
    def steps(self) -> list[date]:
        """Each of its hours or days, by its beginning."""
        if self.is_hourly:
            return [self.begin + number * HOUR for number in range(24)]
        return list(days(day_of(self.begin), day_of(self.end) + DAY))

    def label(self, step: date) -> str:
        return f"{step:%H:%M}" if isinstance(step, datetime) else f"{step:%Y-%m-%d}"


def scope_of(period: str, now: datetime, namespace: str = "", engine: str = "") -> Scope:
    """The last 24 whole hours with the one that runs, or the last days with today."""
    if period == "day":
        begin = now.replace(minute=0, second=0, microsecond=0) - 23 * HOUR
        return Scope(begin, now, True, namespace, engine)
    begin = begin_of(day_of(now) - (PERIODS[period][1] - 1) * DAY)
    return Scope(begin, now, False, namespace, engine)


def use_over_time(scope: Scope, by: str, wanted: Collection[str] = ()) -> dict[str, Figures]:
    """Hours held by resource, then by name, then by step. With `wanted` resources the others have no figures."""
    found: dict[str, Figures] = {}
    shown = "slug" if by == "namespace" else by
    sums = _hourly(scope, shown) if scope.is_hourly else use(scope.begin, scope.end, [shown], scope.only(), "day")
    for key, amounts in sums.items():
        name, step = str(key[-2] or "unknown"), key[-1]
        for resource, amount in amounts.items():
            figures = found.setdefault(resource, {})
            if not wanted or resource in wanted:
                series = figures.setdefault(name, {})
                series[step] = series.get(step, Decimal()) + hours(resource, amount)
    return found


def is_unknown(scope: Scope, found: Mapping[str, Figures]) -> bool:
    """Whether there is no namespace of this name, and there was none with any use in this time. A statement where
    there was no use."""
    return bool(not found and scope.namespace and not Namespace.objects.filter(slug=scope.namespace).exists())


def _hourly(scope: Scope, by: str) -> dict[tuple[Any, ...], dict[str, int]]:
    """One statement, of what was held at some time of the day."""
    keys = columns_of([by])
    rows = Reservation.objects.filter(overlapping(scope.begin, scope.end)).filter(**scope.only()).order_by()
    held = rows.values_list(*keys, "reserved_at", "released_at", "cpu", "memory", "gpus", "extended")
    first, now = seconds_of(scope.begin), seconds_of(scope.end)
    found: dict[tuple[Any, ...], dict[str, int]] = {}
    for *key, reserved_at, released_at, cpu, memory, gpus, extended in held.iterator(chunk_size=2_000):
        begin, end = max(first, seconds_of(reserved_at)), min(now, seconds_of(released_at or scope.end))
        amounts = {CPU: round(cpu * THOUSANDTHS), MEMORY: memory // KIB, GPUS: gpus, **extended}
        for hour in range((begin - first) // 3600, max(0, end - first - 1) // 3600 + 1):
            low = first + hour * 3600
            seconds = min(end, low + 3600) - max(begin, low)
            if seconds > 0:
                sums = found.setdefault((*key, scope.begin + hour * HOUR), {})
                for name, amount in amounts.items():
                    if amount:
                        sums[name] = sums.get(name, 0) + int(amount) * seconds
    return found


def idle_over_time(scope: Scope) -> Figures:
    """Core-hours that parameter servers held without progress, by namespace and step. One statement."""
    rows = IdleHour.objects.filter(begin__gte=scope.begin, begin__lte=scope.end, resource=CPU, **scope.only())
    sums = rows.order_by().annotate(step=_trunc(scope, "begin")).values_list("namespace_slug", "step")
    found: Figures = {}
    for slug, at, amount in sums.annotate(Sum("amount")):
        found.setdefault(slug or "unknown", {})[_step(scope, at)] = hours(CPU, amount)
    return found


@dataclass(frozen=True)
class Measured:
    """Core-hours and GiB-hours held and used by tasks that were measured, of a namespace or a day."""

    name: str
    held_cpu: Decimal
    used_cpu: Decimal
    held_memory: Decimal
    used_memory: Decimal

    @property
    def cpu_percent(self) -> int | None:
        return int(self.used_cpu * 100 / self.held_cpu) if self.held_cpu else None

    @property
    def memory_percent(self) -> int | None:
        return int(self.used_memory * 100 / self.held_memory) if self.held_memory else None


def measured(scope: Scope) -> tuple[list[Measured], list[Measured]]:
    """By namespace, the most unused core-hours first; and by day. Whole days, of which today is not measured yet. One
    statement."""
    rows = MeasuredDay.objects.filter(day__gte=day_of(scope.begin), day__lte=day_of(scope.end), **scope.only())
    sums = rows.order_by().values_list("namespace_slug", "day", "resource").annotate(Sum("held"), Sum("used"))
    namespaces: dict[str, dict[str, list[int]]] = {}
    by_day: dict[str, dict[str, list[int]]] = {}
    for slug, day, resource, held, used in sums:
        for group, key in ((namespaces, slug), (by_day, f"{day}")):
            one = group.setdefault(key, {}).setdefault(resource, [0, 0])
            one[0], one[1] = one[0] + held, one[1] + used
    waste = sorted(map(_measured, namespaces.items()), key=lambda one: one.used_cpu - one.held_cpu)
    return waste, sorted(map(_measured, by_day.items()), key=lambda one: one.name)


def _measured(found: tuple[str, Mapping[str, Sequence[int]]]) -> Measured:
    name, amounts = found
    return Measured(name, *(hours(one, amount) for one in (CPU, MEMORY) for amount in amounts.get(one, (0, 0))))


def failures_over_time(scope: Scope) -> dict[str, dict[date, int]]:
    """Attempts that failed, by reason and step. One statement, within an index."""
    rows = JobAttempt.objects.filter(
        phase=Phase.FAILED.value, decided_at__gte=scope.begin, decided_at__lte=scope.end, **scope.of_attempts()
    )
    step = _trunc(scope, "decided_at")
    counts = rows.order_by().annotate(step=step).values_list("reason", "step").annotate(n=Count("*")).order_by("-n")
    found: dict[str, dict[date, int]] = {}
    for reason, at, count in counts[: MOST_CAUSES * 24]:
        found.setdefault(reason, {})[_step(scope, at)] = count
    return found


@dataclass(frozen=True)
class Waited:
    """Of attempts that were queued in a step and have started: how many, and within which times they did."""

    step: date
    count: int
    median: timedelta
    ninth: timedelta
    longest: timedelta


class _Percentile(Aggregate):
    """The nearest rank: so many percent of the values are not larger."""

    function = "PERCENTILE_DISC"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


def waits_over_time(scope: Scope) -> list[Waited]:
    """By step, those without any left out. One statement, within an index."""
    rows = JobAttempt.objects.filter(
        started_at__isnull=False, queued_at__gte=scope.begin, queued_at__lte=scope.end, **scope.of_attempts()
    ).order_by()
    if connection.vendor != "postgresql":
        return _counted_here(scope, rows.order_by("-queued_at").values_list("queued_at", "started_at")[:MOST_WAITS])
    took = ExpressionWrapper(F("started_at") - F("queued_at"), output_field=DurationField())
    steps = rows.annotate(step=_trunc(scope, "queued_at"), took=took).values("step").order_by("step")
    found = steps.annotate(
        n=Count("*"), median=_Percentile("took", share="0.5"), ninth=_Percentile("took", share="0.9"),
        longest=Max("took"),
    )  # fmt: skip
    zero = timedelta()
    return [
        Waited(
            _step(scope, one["step"]), one["n"], max(zero, one["median"]), max(zero, one["ninth"]),
            max(zero, one["longest"]),
        )
        for one in found
    ]  # fmt: skip


def _counted_here(scope: Scope, pairs: Any) -> list[Waited]:
    by_step: dict[date, list[timedelta]] = {}
    for queued_at, started_at in pairs:
        step: date = queued_at.replace(minute=0, second=0, microsecond=0) if scope.is_hourly else day_of(queued_at)
        by_step.setdefault(step, []).append(max(timedelta(), started_at - queued_at))
    found = []
    for step, times in sorted(by_step.items()):
        times.sort()
        found.append(Waited(step, len(times), _rank(times, 50), _rank(times, 90), times[-1]))
    return found


def _rank(times: Sequence[timedelta], percent: int) -> timedelta:
    return times[max(0, -(-len(times) * percent // 100) - 1)]


def _trunc(scope: Scope, column: str) -> Any:
    return (TruncHour if scope.is_hourly else TruncDay)(column, output_field=DateTimeField())


def _step(scope: Scope, at: datetime) -> date:
    return at if scope.is_hourly else day_of(at)
