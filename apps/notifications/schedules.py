"""Notifications about schedules that the portal has paused: to the owner and to the managers of the namespace.

Not here: how (`telling`), and why a schedule is paused (`apps.schedules.worker`).
"""

from __future__ import annotations

from django.conf import settings
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import deliver
from apps.namespaces.models import Membership, Role
from apps.notifications.letter import LONGEST_LINE, LONGEST_NAME, one_line
from apps.notifications.telling import announce
from apps.schedules.models import Schedule
from apps.schedules.services import SCHEDULE_PAUSED


def schedules_paused_note() -> int:
    """Tell everyone concerned, as they have chosen, of each schedule that was paused since the last call. Returns how
    many there were; may be repeated."""
    return deliver(SCHEDULE_PAUSED, _note)


def _note(event: OutboxEvent) -> None:
    schedule = Schedule.objects.select_related("namespace").filter(pk=event.subject).first()
    if schedule is None:
        return  # it was removed since
    managers = Membership.objects.filter(namespace=schedule.namespace, role=Role.MANAGER).values("user_id")
    of, name = one_line(schedule.namespace.slug, LONGEST_NAME), one_line(schedule.name, LONGEST_NAME)
    page = reverse("schedule_page", args=[schedule.pk])
    now = timezone.now()
    concerned = Q(pk__in=managers) | (Q(pk=event.facts["owner"]) if event.facts["owner"] else Q(pk__in=[]))
    for user in User.objects.filter(concerned, is_active=True):
        is_owner = str(user.pk) == event.facts["owner"]
        # Who has left the namespace is told why, and gets no address that they may not open.
        may_open = Membership.objects.filter(namespace=schedule.namespace, user=user).exists()
        body = "\n\n".join(
            [
                f"The portal has paused the schedule {name} of {of}."
                + (f"\n{settings.PUBLIC_URL}{page}" if may_open else ""),
                one_line(event.facts["reason"], LONGEST_LINE),
                "It launches nothing until it is resumed. Correct the cause, then resume it.",
                f"-- \nYou get this as {'its owner' if is_owner else f'a manager of {of}'}.\n",
            ]
        )
        url = f"{settings.PUBLIC_URL}{page if may_open else ''}"
        announce(
            user, "schedule.paused", schedule.namespace, key=f"schedule.paused {event.pk}",
            subject=f"Schedule {name} paused", text=body, url=url, now=now,
        )  # fmt: skip
