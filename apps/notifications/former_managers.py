"""Mails to the managers of a namespace that another is no longer one, and what of theirs still works there.

Events of the outbox say so. Not here: what that is (`apps.webhooks.former_makers`).
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse

from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import MANAGER_LEFT, deliver
from apps.namespaces.models import Membership, Namespace, Role
from apps.webhooks.former_makers import Left, left_by_former

MOST_MANAGERS = 50


def former_managers_note() -> int:
    """Send what is due. Returns how many events there were; one whose mail the server refuses is tried again later."""
    return deliver(MANAGER_LEFT, _mail)


def _mail(event: OutboxEvent) -> None:
    """Nothing where nothing was left, and where the person is a manager again by now."""
    namespace = Namespace.objects.filter(pk=event.subject).first()
    if namespace is None or not settings.YARDMASTER_SENDS_MAIL:
        return
    maker = UUID(event.facts["user"])
    left = next((one for one in left_by_former(namespace) if one.maker_id == maker), None)
    managers = Membership.objects.filter(namespace=namespace, role=Role.MANAGER, user__is_active=True)
    addresses = list(managers.exclude(user__email="").values_list("user__email", flat=True)[:MOST_MANAGERS])
    if left is None or not addresses:
        return
    subject = f"Yardmaster: {left.name} no longer manages {namespace.slug}"
    EmailMessage(subject, _body(namespace, left), to=[], bcc=addresses).send()


def _body(namespace: Namespace, left: Left) -> str:
    lines = [f"webhook {one.shown}" for one in left.webhooks]
    lines += [f"token {one.name} of {one.user.username}" for one in left.tokens]
    address = f"{settings.PUBLIC_URL}{reverse('former_makers_page', args=[namespace.pk])}"
    return "\n".join(
        [
            f"{left.name} is no longer a manager of {namespace.slug}. Made by {left.name}, and still working:",
            *(f"- {line}" for line in lines),
            "",
            "Revoke it, or keep it under your name:",
            address,
        ]
    )
