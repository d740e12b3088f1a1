"""The managers of a namespace are told that a level of its budget is reached.

Events of the outbox say so, once per level and month. Not here: what a budget is (`apps.accounting`), and by which way
each manager is told (`telling`).
"""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import BUDGET_REACHED, deliver
from apps.namespaces.models import Membership, Namespace, Role
from apps.notifications.telling import announce

MOST_MANAGERS = 50


def budgets_note() -> int:
    """Write what is due to each manager. Returns how many events there were; may be repeated."""
    return deliver(BUDGET_REACHED, _note)


def _note(event: OutboxEvent) -> None:
    namespace = Namespace.objects.filter(pk=event.subject).first()
    if namespace is None:
        return
    facts, now = event.facts, timezone.now()
    state = "is used up" if facts["spent"] else f"has reached {facts['level']} %"
    then = (
        "New jobs wait until the next month, or until the budget is raised; running jobs continue."
        if facts["spent"]
        else ""
    )
    url = f"{settings.PUBLIC_URL}{reverse('namespace_page', args=[namespace.pk])}"
    lines = [f"The budget of {namespace.slug} for {facts['month']} {state}.", facts["what"], then, url]
    text = "\n".join(line for line in lines if line)
    text += f"\n\n-- \nYou get this e-mail as a manager of {namespace.slug}.\n"
    kind = "budget.spent" if facts["spent"] else "budget.warned"
    managers = Membership.objects.filter(namespace=namespace, role=Role.MANAGER).values("user_id")
    for user in User.objects.filter(pk__in=managers, is_active=True).order_by("pk")[:MOST_MANAGERS]:
        announce(
            user, kind, namespace, key=f"{kind} {event.pk}", subject=f"Budget of {namespace.slug} {state}", text=text,
            url=url, now=now,
        )  # fmt: skip
