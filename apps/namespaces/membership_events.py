"""That a person's membership of a team has changed is told to who reads it from the outbox, in the transaction of the
change. Not here: how the person is told (`apps.notifications.memberships`).
"""

from __future__ import annotations

from apps.accounts.models import User
from apps.dispatch.outbox import publish
from apps.namespaces.models import Namespace

MEMBERSHIP_CHANGED = "membership.changed"
"""Topic of the outbox: the membership of `subject` (a namespace) has changed. Facts: `user` (the id), `event`, `role`,
`role_before`, `by` (a name, or the provider whose groups say so; empty: the portal)."""
ADDED, CHANGED, REMOVED = "member.added", "member.changed", "member.removed"


def membership_changed(
    event: str, namespace: Namespace, user: User, *, actor: User | None, source: str = "", role: str = "",
    role_before: str = "",
) -> None:  # fmt: skip
    """Tell it, unless the person did it alone, or is a service account. In the running transaction."""
    if user.is_service or (actor is not None and actor.pk == user.pk):
        return
    by = source or (actor.username if actor is not None else "")
    publish(
        MEMBERSHIP_CHANGED, namespace.pk, user=str(user.pk), event=event, role=str(role), role_before=str(role_before),
        by=by,
    )  # fmt: skip
