"""Compare what namespaces used this month with their budgets: warn once per level, hold what is spent, and lift the
hold when the month begins or the budget is raised.

May be repeated, by several workers at once; running jobs continue.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.accounting.limits import default_limits, limits_by_namespace, standings
from apps.accounting.models import Budget, BudgetWarning
from apps.accounting.report import month_of
from apps.audit.services import record
from apps.dispatch.outbox import BUDGET_REACHED, happened, publish
from apps.jobs.models import Cause, Hold
from apps.jobs.state import holds
from apps.namespaces.models import Namespace
from yardmaster.accounting.budgets import SPENT, Line, Standing, change_of_hold, warnings_due


def budgets_sweep(now: datetime) -> None:
    """Judge every namespace that is bounded, or held although it is not."""
    ids = set(_held()) | set(Budget.objects.values_list("namespace_id", flat=True))
    if any(limit is not None for limit in default_limits().values()):
        ids |= set(Namespace.objects.filter(closed_at=None).values_list("pk", flat=True))
    _judge(ids, now)


def namespace_judge(namespace: Namespace, now: datetime) -> None:
    """The same of one namespace, at once."""
    _judge({namespace.pk}, now)


def warnings_forget(namespace: Namespace, now: datetime) -> None:
    """Of levels that are not reached any more, as the budget was raised: they are told again when they are."""
    percent = _standing(namespace, now).percent
    BudgetWarning.objects.filter(namespace=namespace, month=month_of(now).date(), level__gt=percent).delete()


def _standing(namespace: Namespace, now: datetime) -> Standing:
    return standings(limits_by_namespace([namespace.pk]), now)[namespace.pk]


def _held() -> Iterable[UUID]:
    rows = Hold.objects.filter(cause=Cause.BUDGET, namespace__isnull=False)
    return [pk for pk in rows.values_list("namespace_id", flat=True) if pk is not None]


def _judge(ids: set[UUID], now: datetime) -> None:
    if not ids:
        return
    month, held = month_of(now).date(), set(_held())
    warned: dict[UUID, set[int]] = {}
    for pk, level in BudgetWarning.objects.filter(month=month).values_list("namespace_id", "level"):
        warned.setdefault(pk, set()).add(level)
    due = [
        pk
        for pk, one in standings(limits_by_namespace(sorted(ids)), now).items()
        if warnings_due(one.percent, settings.YARDMASTER_BUDGET_WARNINGS, warned.get(pk, set()))
        or change_of_hold(one.is_spent, pk in held) is not None
    ]
    for namespace in Namespace.objects.filter(pk__in=due):
        _act(namespace, now)


def _act(namespace: Namespace, now: datetime) -> None:
    with transaction.atomic():
        # Several processes may judge at once, and the budget may be changed meanwhile: the row says whose turn it is,
        # and what counts is how it stands then.
        Namespace.objects.select_for_update().get(pk=namespace.pk)
        one = _standing(namespace, now)
        for level in warnings_due(one.percent, settings.YARDMASTER_BUDGET_WARNINGS, set()):
            _warn(namespace, one, level, now)
        is_held = Hold.objects.filter(namespace=namespace, cause=Cause.BUDGET).exists()
        change = change_of_hold(one.is_spent, is_held)
        if change is True and one.fullest is not None:
            holds.hold(namespace, reason=_words(one.fullest), actor=None, cause=Cause.BUDGET)
        elif change is False:
            holds.lift(namespace, actor=None, cause=Cause.BUDGET)


def _warn(namespace: Namespace, one: Standing, level: int, now: datetime) -> None:
    month = month_of(now).date()
    _, is_new = BudgetWarning.objects.get_or_create(
        namespace=namespace, month=month, level=level, defaults={"at": now}
    )  # fmt: skip
    if is_new and one.fullest is not None:
        facts = {"month": f"{month:%Y-%m}", "level": level, "what": _words(one.fullest)}
        record(None, "budget.warn", f"namespace:{namespace.pk}", namespace=namespace, **facts)
        publish(BUDGET_REACHED, namespace.pk, **facts, spent=level >= SPENT)
        about = {"name": facts["month"], "level": level, "message": facts["what"]}
        happened(
            f"budget.{'spent' if level >= SPENT else 'warned'}", namespace.pk, namespace.pk, "budget", now, **about
        )


def _words(line: Line) -> str:
    return f"{line.words}: {line.used:,.1f} of {line.limit:,.1f} used this month"
