"""What budgets bound, of many namespaces at once, and what was used of it this month."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.conf import settings

from apps.accounting.models import Budget
from apps.accounting.priced import Use, price_list, priced_use
from apps.accounting.report import month_of
from yardmaster.accounting.amounts import CPU, GPUS, MEMORY
from yardmaster.accounting.budgets import CPU_HOURS, GPU_HOURS, MEMORY_HOURS, MONEY, Standing, standing

Limits = Mapping[str, Decimal | None]
_BY_ID = 200
"""Namespaces whose use is asked for by their ids; that of more is read as a whole."""


def default_limits() -> Limits:
    found: Limits = settings.YARDMASTER_DEFAULT_BUDGET
    return found


def limits_by_namespace(ids: Collection[UUID]) -> dict[UUID, Limits]:
    """Of each of these namespaces its own budget, or the default one. One statement."""
    rows = Budget.objects.filter(namespace__in=ids).values("namespace_id", *default_limits())
    own = {row.pop("namespace_id"): row for row in rows}
    return {pk: own.get(pk, default_limits()) for pk in ids}


def standings(limits: Mapping[UUID, Limits], now: datetime) -> dict[UUID, Standing]:
    """Where these namespaces stand in the month of `now`."""
    bounded = [pk for pk, one in limits.items() if any(limit is not None for limit in one.values())]
    used: dict[UUID, Use] = {}
    if bounded:
        only = {"namespace_id__in": bounded} if len(bounded) <= _BY_ID else {}
        for (pk, _), one in priced_use(month_of(now), now, ["namespace"], only).items():
            used.setdefault(pk, Use()).add(one)
    return {pk: standing_by(one, used.get(pk, Use())) for pk, one in limits.items()}


def standing_by(limits: Limits, use: Use) -> Standing:
    """Where these limits stand after this use of a month."""
    return standing(_applied(limits), _used(use))


def _applied(limits: Limits) -> Limits:
    """Money bounds nothing where nothing has a price."""
    return {name: limit for name, limit in limits.items() if name != MONEY or price_list()}


def _used(one: Use) -> dict[str, Decimal]:
    hours = one.hours
    return {CPU_HOURS: hours[CPU], MEMORY_HOURS: hours[MEMORY], GPU_HOURS: hours[GPUS], MONEY: one.cost}
