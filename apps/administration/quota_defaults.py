"""What a new namespace may hold: read, and changed by administrators. Namespaces that are there keep what they have.

Not here: giving the defaults to some of them (`quota_bulk`), and the settings' first values (`apps.namespaces.models`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.administration.quota_bulk import checked_reason
from apps.administration.services import Limits
from apps.audit.services import record
from apps.namespaces.models import DefaultQuota, default_limits
from apps.namespaces.quota_limits import flat
from apps.namespaces.quota_models import Kind


@dataclass(frozen=True)
class Shown:
    """The defaults of one kind of namespaces, by the fields of a quota. `changed_at` None: as the settings say."""

    kind: Kind
    limits: dict[str, Any]
    changed_at: datetime | None
    changed_by: str


def defaults_shown() -> list[Shown]:
    """Those of each kind. Two statements."""
    rows = {row.kind: row for row in DefaultQuota.objects.select_related("changed_by")}
    limits = default_limits()
    return [_shown(kind, limits[kind], rows.get(kind)) for kind in Kind]


def defaults_set(*, kind: Kind, limits: Limits, reason: str, actor: User) -> Shown:
    """Set every limit of new namespaces of a kind. What is left out stays. Raises `Invalid` without a reason."""
    reason = checked_reason(reason)
    with transaction.atomic():
        DefaultQuota.objects.select_for_update().filter(kind=kind).first()
        before = default_limits()[kind]
        wanted = flat({**before, **limits})
        row, _ = DefaultQuota.objects.update_or_create(
            kind=kind, defaults={"limits": wanted, "changed_at": timezone.now(), "changed_by": actor}
        )
        after = default_limits()[kind]
        facts: dict[str, Any] = {"reason": reason, "before": facts_of(before), "after": facts_of(after)}
        record(actor, "quota.defaults", f"quota_defaults:{kind.value}", **facts)
    return _shown(kind, after, row)


def facts_of(limits: dict[str, Any]) -> dict[str, Any]:
    """As JSON has it."""
    return {name: float(value) if name == "cpu" and value is not None else value for name, value in limits.items()}


def _shown(kind: Kind, limits: dict[str, Any], row: DefaultQuota | None) -> Shown:
    by = row.changed_by.username if row and row.changed_by else ""
    return Shown(kind, limits, row.changed_at if row else None, by)
