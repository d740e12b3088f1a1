"""Setting quotas. Every change writes its audit event in its own transaction. Not here: who may (the views)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NotRequired, TypedDict

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict
from apps.jobs.services import quota_changed
from apps.namespaces.models import Namespace, Quota, default_quota_create
from apps.namespaces.quota_limits import by_fields, flat, open_schedules, plain_limit, usual_limits, usual_put
from apps.namespaces.services import engine_namespaces_changed


class Limits(TypedDict):
    """What a namespace may hold at once; None: unlimited."""

    cpu: Decimal | None
    memory: int | None
    gpus: int | None
    storage: int | None
    files: NotRequired[int | None]
    """Left out: stays as it is."""
    running_jobs: int | None
    logs: NotRequired[int | None]
    sessions: NotRequired[int | None]
    queued_jobs: NotRequired[int | None]
    """Left out: these stay as they are."""
    extended: NotRequired[dict[str, int]]
    """Of other resources, by name: those that are not named have no limit of their own. Left out: stays as it is."""
    priority_ceiling: NotRequired[int]
    """Never unlimited; left out: stays as it is."""


def quota_set(
    *, namespace: Namespace, limits: Limits, actor: User, seen: Limits | None = None, reason: str = ""
) -> Quota:
    """Set every limit. One below what is held now takes nothing away: it only admits nothing new. What a scheduled
    change has in force stays so until its end.

    `seen` is what the actor had before their eyes: where it was changed since, 409 instead of undoing that.
    """
    now = timezone.now()
    with transaction.atomic():
        default_quota_create(namespace)
        quota = Quota.objects.select_for_update().get(pk=namespace.pk)
        before = quota_facts(quota)
        if seen is not None and any(before[name] != plain_limit(value) for name, value in seen.items()):
            raise Conflict(
                "The limits were changed by another user while you edited them. Your changes are not saved.",
                remedy="Review the current limits, then save yours again.",
            )
        usual_put(quota, flat({**before, **limits}), open_schedules([namespace.pk]).get(namespace.pk, []), now)
        quota._history_user = actor  # type: ignore[attr-defined]  # where django-simple-history looks for it
        quota._change_reason = reason or None  # type: ignore[attr-defined]
        quota.save()
        facts = {"before": before, "after": quota_facts(quota)} | ({"reason": reason} if reason else {})
        record(actor, "quota.set", f"namespace:{namespace.pk}", namespace=namespace, **facts)
        quota_changed(namespace)
        engine_namespaces_changed(namespace.pk, now)
    return quota


def quota_facts(quota: Quota) -> dict[str, Any]:
    """Every limit, as the audit has it: those that hold where no scheduled change does."""
    return by_fields(usual_limits(quota))
