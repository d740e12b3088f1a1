"""The budgets of namespaces: what they are, who sets them, and where a namespace stands in its month.

Not here: warnings and holds (`budget_sweep`), and what is spent or not (`yardmaster.accounting.budgets`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounting import budget_sweep
from apps.accounting.limits import Limits, limits_by_namespace, standings
from apps.accounting.models import Budget
from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Invalid
from apps.namespaces.models import Namespace
from yardmaster.accounting.budgets import NAMES, Standing
from yardmaster.errors import Problem

MOST = Decimal(10) ** 11


def limits_of(namespace: Namespace) -> Limits:
    """What bounds the namespace in a month: its own budget, or the default one. None: unlimited."""
    return limits_by_namespace([namespace.pk])[namespace.pk]


def standing_of(namespace: Namespace | UUID, now: datetime) -> Standing:
    """Where the namespace stands in this month. Without a budget one statement."""
    pk = namespace.pk if isinstance(namespace, Namespace) else namespace
    return standings(limits_by_namespace([pk]), now)[pk]


def budget_set(*, namespace: Namespace, limits: Mapping[str, Decimal | None] | None, actor: User) -> None:
    """Give the namespace a budget of its own, or (None) the default one again; and see at once what that means: what is
    raised starts jobs again, what is spent starts no more. Raises `Invalid`."""
    refuse(limits or {})
    before = _written(limits_of(namespace))
    with transaction.atomic():
        if limits is None:
            Budget.objects.filter(namespace=namespace).delete()
        else:
            Budget.objects.update_or_create(
                namespace=namespace, defaults={name: limits.get(name) for name in settings.YARDMASTER_DEFAULT_BUDGET}
            )
        after = _written(limits_of(namespace))
        record(
            actor, "budget.set", f"namespace:{namespace.pk}", namespace=namespace, budget=after, budget_before=before,
            is_default=limits is None,
        )  # fmt: skip
        budget_sweep.warnings_forget(namespace, timezone.now())
        budget_sweep.namespace_judge(namespace, timezone.now())


def refuse(limits: Mapping[str, Decimal | None]) -> None:
    """Raises `Invalid` for what is no limit."""
    problems = [
        Problem(name, "out_of_range", f"{NAMES[name]}: not between 0 and {MOST}.", "Leave it empty for no limit.")
        for name, limit in limits.items()
        if limit is not None and not (limit.is_finite() and 0 <= limit < MOST)
    ]
    if problems:
        raise Invalid(problems)


def _written(limits: Limits) -> dict[str, str | None]:
    return {name: None if limit is None else f"{limit.normalize():f}" for name, limit in limits.items()}
