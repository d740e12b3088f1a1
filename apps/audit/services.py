"""Writing down who did what. The row joins the caller's transaction: a deed that is rolled back was not done."""

from __future__ import annotations

from typing import Any

from apps.accounts.models import User
from apps.audit.models import AuditEvent
from apps.namespaces.models import Namespace


def record(actor: User | None, action: str, subject: str, *, namespace: Namespace | None = None, **facts: Any) -> None:
    """Add an audit event. `actor` None: the portal itself. `facts` must be JSON; never a secret."""
    AuditEvent.objects.create(
        actor_id=actor.pk if actor is not None else None,
        actor_name=actor.get_username() if actor is not None else "",
        action=action,
        subject=subject,
        namespace_id=namespace.pk if namespace is not None else None,
        facts=facts,
    )
