"""Amounts of an engine reserved for a namespace, or a group of the tree of shares, within a time: making and ending
them. Every change is audited.

Not here: what they keep from others (`yardmaster.queueing.windows`); who may make them (the callers).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict, Invalid, NotFound
from apps.jobs.engines.configured import engine_named, engine_names
from apps.jobs.models import AdvanceReservation
from apps.jobs.state import queue
from apps.jobs.state.windows import windows_on
from apps.namespaces.models import Namespace, ShareNode
from apps.namespaces.selectors import namespace_for
from yardmaster.errors import Problem
from yardmaster.quantity import format_amount
from yardmaster.queueing.resources import to_amount, to_units, units_of
from yardmaster.queueing.windows import most_reserved

LONGEST = timedelta(days=92)
MOST_RESERVATIONS = 200
"""That are not over, on all engines together."""
LONGEST_REASON = 300
MOST_RESOURCES = 20
"""Of one reservation."""


@dataclass(frozen=True)
class Reserved:
    """What is to be reserved. `amounts`: cores as `cpu`, bytes as `memory`, pieces as `gpus` or another name."""

    engine: str
    amounts: Mapping[str, float]
    begins_at: datetime
    ends_at: datetime
    reason: str = ""


def reservations(*, with_past: bool = False) -> QuerySet[AdvanceReservation]:
    """Those that are not over, the next first; with the past ones the newest first."""
    rows = AdvanceReservation.objects.select_related("namespace", "group", "by")
    return rows.order_by("-pk") if with_past else rows.filter(ends_at__gt=timezone.now()).order_by("begins_at", "pk")


def reservation_for(key: uuid.UUID) -> AdvanceReservation:
    """Raises NotFound."""
    found = AdvanceReservation.objects.select_related("namespace", "group").filter(pk=key).first()
    if found is None:
        raise NotFound("There is no such reservation.")
    return found


def owner_named(actor: User, namespace: str, group: str) -> Namespace | ShareNode:
    """The namespace of this slug or ID, or the group of this name: one of both is said. Raises `Invalid`, `NotFound`
    for a namespace."""
    if bool(namespace) == bool(group):
        message = "Name a namespace or a group, and not both." if group else "Name a namespace or a group."
        raise Invalid([Problem("namespace", "required", message, "Fill in one of the two.", namespace)])
    if namespace:
        return namespace_for(actor, namespace)
    found = ShareNode.objects.filter(namespace=None, name=group).first()
    if found is None:
        remedy = "Choose a group from the page Shares."
        raise Invalid([Problem("group", "unknown", "There is no group of this name.", remedy, group)])
    return found


def reservation_make(*, whose: Namespace | ShareNode, reserved: Reserved, actor: User) -> AdvanceReservation:
    """For a namespace, or for a group with all namespaces in it. Raises `Invalid` with a problem of each field, also
    where more would be reserved at one moment than the engine has; `Conflict` where there are too many. Raises what the
    engine says where it does not answer."""
    amounts = {name: amount for name, amount in reserved.amounts.items() if amount > 0}
    now = timezone.now()
    if isinstance(whose, ShareNode) and whose.namespace_id is not None:
        raise Invalid([Problem("group", "unknown", "This is not a group.", "Choose a group.", str(whose.pk))])
    problems = _of_time(reserved, now) + _of_amounts(reserved.engine, amounts)
    if problems:
        raise Invalid(problems)
    total = units_of(engine_named(reserved.engine).capacity().total)
    with transaction.atomic():
        queue.lock_admissions()
        if AdvanceReservation.objects.filter(ends_at__gt=now).count() >= MOST_RESERVATIONS:
            raise Conflict(
                f"There are {MOST_RESERVATIONS} reservations already.", "too_many", remedy="End some of them first."
            )
        _refuse_too_much(reserved, amounts, total, now)
        made = AdvanceReservation.objects.create(
            engine=reserved.engine, amounts=amounts, begins_at=reserved.begins_at, ends_at=reserved.ends_at,
            reason=reserved.reason[:LONGEST_REASON], by=actor,
            **({"namespace": whose} if isinstance(whose, Namespace) else {"group": whose}),
        )  # fmt: skip
        record(actor, "reservation.create", f"reservation:{made.pk}", namespace=made.namespace, **_facts(made))
        queue.ask(reserved.engine)
    return made


def reservation_end(*, found: AdvanceReservation, actor: User) -> None:
    """From now on nothing is kept for it. One that is over stays as it is."""
    now = timezone.now()
    with transaction.atomic():
        queue.lock_admissions()
        rows = AdvanceReservation.objects.filter(pk=found.pk, ends_at__gt=now)
        if not rows.filter(begins_at__gte=now).delete()[0]:
            if not rows.update(ends_at=now):
                return
            found.ends_at = now
        record(actor, "reservation.end", f"reservation:{found.pk}", namespace=found.namespace, **_facts(found))
        queue.ask(found.engine)


def _facts(one: AdvanceReservation) -> dict[str, object]:
    times = {"begins_at": one.begins_at.isoformat(), "ends_at": one.ends_at.isoformat()}
    group = {} if one.group is None else {"group": one.group.name}
    return {**group, "engine": one.engine, "amounts": dict(one.amounts), "reason": one.reason, **times}


def _of_time(said: Reserved, now: datetime) -> list[Problem]:
    if said.ends_at <= max(now, said.begins_at):
        message = "The end must be after the start, and not in the past."
        return [Problem("ends_at", "out_of_range", message, "Choose a later end.", said.ends_at.isoformat())]
    if said.ends_at - max(now, said.begins_at) > LONGEST:
        message = f"A reservation lasts {LONGEST.days} days at most."
        return [Problem("ends_at", "out_of_range", message, "Choose an earlier end.", said.ends_at.isoformat())]
    return []


def _of_amounts(engine: str, amounts: Mapping[str, float]) -> list[Problem]:
    if engine not in engine_names():
        remedy = f"Use one of: {', '.join(engine_names())}."
        return [Problem("engine", "unknown", "There is no engine of this name.", remedy, engine[:63])]
    if not amounts:
        return [Problem("amounts", "required", "Nothing is reserved.", "Enter an amount of at least one resource.")]
    return []


def _refuse_too_much(said: Reserved, amounts: Mapping[str, float], total: Mapping[str, int], now: datetime) -> None:
    begins = max(said.begins_at, now)
    others = most_reserved(windows_on(said.engine, now), begins, said.ends_at)
    problems = []
    for name, units in to_units(amounts).items():
        left = total.get(name, 0) - others.get(name, 0)
        if units > left:
            has, free = (format_amount(name, to_amount(name, max(0, one))) for one in (total.get(name, 0), left))
            message = f"{said.engine} has {has} of {name}, and {free} of it can still be reserved within this time."
            remedy = "Reserve less, choose another time, or end another reservation."
            value = format_amount(name, to_amount(name, units))
            problems.append(Problem(f"amounts.{name}", "too_much", message, remedy, value))
    if problems:
        raise Invalid(problems)
