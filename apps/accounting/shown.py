"""What one job used, for its page and its address: by role, finished attempts and retries together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from apps.accounting.measuring import measured_of
from apps.accounting.priced import Use, price_list, total_of
from apps.accounting.sums import ledger_sums
from apps.jobs.models import Job, Reservation, TaskFact
from yardmaster.accounting.amounts import CPU, MEMORY, hours
from yardmaster.accounting.calendar import DAY, begin_of, day_of
from yardmaster.accounting.prices import cost


@dataclass(frozen=True)
class RoleHours:
    """`measured_…` None: no task of the role was measured."""

    role: str
    use: Use
    measured_cpu: Decimal | None = None
    measured_memory: Decimal | None = None


@dataclass(frozen=True)
class JobHours:
    roles: list[RoleHours]
    total: Use


def job_hours(job: Job, now: datetime, *, measured: bool = True) -> JobHours:
    """What the job held so far, in the order of its roles' names. Three statements; two without what was measured."""
    rows = Reservation.objects.filter(job_id=job.pk)
    spans = [(row["reserved_at"], row["released_at"] or now) for row in rows.values("reserved_at", "released_at")]
    if not spans:
        return JobHours([], Use())
    begin, end = min(since for since, _ in spans), max(max(spans_end for _, spans_end in spans), now)
    found: dict[str, Use] = {}
    for first, last in price_list().parts(day_of(begin), day_of(end) + DAY):
        part = ledger_sums([rows], max(begin, begin_of(first)), min(end, begin_of(last)), ["role"])
        for (role,), amounts in part.items():
            found.setdefault(role, Use()).add(Use(amounts, cost(amounts, price_list().at(first))))
    really = _measured(job) if measured else {}
    roles = [RoleHours(role, one, *really.get(role, (None, None))) for role, one in sorted(found.items())]
    return JobHours(roles, total_of(one.use for one in roles))


def _measured(job: Job) -> dict[str, tuple[Decimal, Decimal]]:
    """Core-hours and GiB-hours that the tasks of each role were measured to use, in all attempts."""
    sums: dict[str, Counter[tuple[str, str]]] = {}
    for fact in TaskFact.objects.filter(job=job).only("job", "attempt", "role", "usage_samples"):
        found = measured_of({"tasks": 1, "cpu": 0, "memory": 0}, [fact])
        if found:
            sums.setdefault(fact.role, Counter()).update(found)
    return {role: (hours(CPU, one[CPU, "used"]), hours(MEMORY, one[MEMORY, "used"])) for role, one in sums.items()}
