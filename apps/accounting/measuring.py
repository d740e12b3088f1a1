"""What tasks really used of what they held, kept by day, since the samples are deleted with their job.

A role counts on the day on which it was released, with all of its time; only tasks that were measured count, each for
as long as it was. Not here: what samples say (`yardmaster.usage`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import Any

from django.db.models import Exists, OuterRef

from apps.accounting.models import MeasuredDay
from apps.jobs.models import Reservation, TaskFact
from yardmaster.accounting.amounts import CPU, KIB, MEMORY, THOUSANDTHS
from yardmaster.accounting.calendar import DAY, begin_of
from yardmaster.usage import Sample, spent

_AT_ONCE = 200
_NAMES = ("namespace_id", "namespace_slug", "owner_id", "role", "engine")
_COLUMNS = ("job_id", "attempt", "tasks", "cpu", "memory", *_NAMES)


def day_measure(day: date) -> None:
    """Write what was measured of the roles that were released on this day, in place of what was written of it."""
    released = Reservation.objects.filter(released_at__gte=begin_of(day), released_at__lt=begin_of(day + DAY))
    same = {name: OuterRef(name) for name in ("job_id", "attempt", "role")}
    # Admitted again, its samples are of its last run, which counts when that is released.
    released = released.exclude(Exists(Reservation.objects.filter(pk__gt=OuterRef("pk"), **same)))
    sums: Counter[tuple[Any, ...]] = Counter()
    batch: list[dict[str, Any]] = []
    for row in released.values(*_COLUMNS).iterator(chunk_size=_AT_ONCE):
        batch.append(row)
        if len(batch) == _AT_ONCE:
            sums.update(_measured(batch))
            batch = []
    sums.update(_measured(batch))
    found = {key[:-1] for key in sums}
    MeasuredDay.objects.filter(day=day).delete()
    MeasuredDay.objects.bulk_create(
        MeasuredDay(
            day=day, resource=key[-1], held=sums[*key, "held"], used=sums[*key, "used"],
            **dict(zip(_NAMES, key, strict=False)),
        )
        for key in sorted(found, key=repr)
    )  # fmt: skip


def _measured(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """By names, resource, and `held` or `used`. An attempt that was admitted several times is measured once: its
    samples are those of its last run."""
    wanted = {(row["job_id"], row["attempt"], row["role"]): row for row in rows}
    facts = TaskFact.objects.filter(job__in={key[0] for key in wanted}).only("job", "attempt", "role", "usage_samples")
    sums: Counter[tuple[Any, ...]] = Counter()
    for fact in facts.iterator(chunk_size=_AT_ONCE):
        row = wanted.get((fact.job_id, fact.attempt, fact.role))
        if row is not None:
            names = tuple(row[name] for name in _NAMES)
            sums.update({(*names, *key): amount for key, amount in measured_of(row, [fact]).items()})
    return sums


def measured_of(row: dict[str, Any], facts: Iterable[TaskFact]) -> Counter[tuple[str, str]]:
    """Of tasks that held their part of this row of the ledger, by resource and `held` or `used`."""
    sums: Counter[tuple[str, str]] = Counter()
    count = row["tasks"] or 1
    for fact in facts:
        found = spent([Sample(*one) for one in fact.usage_samples])
        if found is None:
            continue
        sums[CPU, "held"] += round(found.seconds * float(row["cpu"]) * THOUSANDTHS / count)
        sums[CPU, "used"] += round(found.cpu_seconds * THOUSANDTHS)
        sums[MEMORY, "held"] += round(found.seconds * row["memory"] / KIB / count)
        sums[MEMORY, "used"] += round(found.memory_seconds / KIB)
    return sums
