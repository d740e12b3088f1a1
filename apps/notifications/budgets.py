"""Mails to the managers of a namespace that a level of its budget is reached.

Events of the outbox say so, once per level and month. Not here: what a budget is (`apps.accounting`).
"""

from __future__ import annotations

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse

from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import BUDGET_REACHED, deliver
from apps.namespaces.models import Membership, Namespace, Role

MOST_MANAGERS = 50


def budgets_note() -> int:
    """Send what is due. Returns how many events there were; one whose mail the server refuses is tried again later."""
    return deliver(BUDGET_REACHED, _mail)


def _mail(event: OutboxEvent) -> None:
    namespace = Namespace.objects.filter(pk=event.subject).first()
    if namespace is None or not settings.YARDMASTER_SENDS_MAIL:
        return
    managers = Membership.objects.filter(namespace=namespace, role=Role.MANAGER, user__is_active=True)
    addresses = list(managers.exclude(user__email="").values_list("user__email", flat=True)[:MOST_MANAGERS])
    if not addresses:
        return
    facts = event.facts
    state = "is used up" if facts["spent"] else f"has reached {facts['level']} %"
    then = "New jobs wait until the next month or a higher budget; running jobs continue." if facts["spent"] else ""
    address = f"{settings.PUBLIC_URL}{reverse('namespace_page', args=[namespace.pk])}"
    body = "\n".join([f"The budget of {namespace.slug} for {facts['month']} {state}.", facts["what"], then, address])
    EmailMessage(f"Yardmaster: budget of {namespace.slug} {state}", body, to=[], bcc=addresses).send()
