"""What parameter servers held without progress, by hour. Counted once a minute, because a job's progress is known only
as it is now.

Not here: which servers are idle at this moment (`dashboards`), and showing it over time (`trends`).
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from apps.accounting.dashboards import idle_reservations
from apps.accounting.models import IdleCounted, IdleHour
from apps.accounting.sums import seconds_of
from yardmaster.accounting.amounts import CPU, KIB, MEMORY, THOUSANDTHS

KEPT = timedelta(days=400)
LONGEST_STEP = timedelta(minutes=5)
"""Since the last count. What a longer pause leaves out is not guessed."""
Sums = Counter[tuple[UUID, str, str, str]]
"""By namespace, its name, engine and resource."""


def idle_hours_sweep(now: datetime) -> None:
    """Count what was held since the last time, into the hour of `now`. May be repeated, and by several workers at once:
    no time is counted twice. Whole seconds count."""
    now = now.replace(microsecond=0)
    IdleCounted.objects.bulk_create([IdleCounted(upto=now)], ignore_conflicts=True)
    with transaction.atomic():
        counted = IdleCounted.objects.select_for_update().get(pk=1)
        since = max(counted.upto, now - LONGEST_STEP)
        if since >= now:
            return
        _add(_sums(since, now), now.replace(minute=0, second=0, microsecond=0))
        counted.upto = now
        counted.save(update_fields=["upto"])
        IdleHour.objects.filter(begin__lt=now - KEPT).delete()


def _sums(since: datetime, now: datetime) -> Sums:
    sums: Sums = Counter()
    names = ("namespace_id", "namespace_slug", "engine", "cpu", "memory", "idle_from")
    for namespace, slug, engine, cpu, memory, idle_from in idle_reservations(now).values_list(*names).iterator():
        seconds = max(0, seconds_of(now) - max(seconds_of(since), seconds_of(idle_from)))
        sums[namespace, slug, engine, CPU] += round(cpu * THOUSANDTHS) * seconds
        sums[namespace, slug, engine, MEMORY] += memory // KIB * seconds
    return sums


def _add(sums: Sums, begin: datetime) -> None:
    """Belongs into a transaction that has the row of `IdleCounted` locked."""
    there = {(one.namespace_id, one.engine, one.resource): one for one in IdleHour.objects.filter(begin=begin)}
    new = []
    for (namespace, slug, engine, resource), amount in sums.items():
        key = (namespace, engine, resource)  # a namespace may have been called otherwise
        if key not in there and amount:
            names = {"namespace_id": namespace, "namespace_slug": slug, "engine": engine}
            there[key] = IdleHour(begin=begin, resource=resource, amount=0, **names)
            new.append(there[key])
        if key in there:
            there[key].amount += amount
    IdleHour.objects.bulk_update([one for one in there.values() if one.pk], ["amount"])
    IdleHour.objects.bulk_create(new)
