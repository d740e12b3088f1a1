"""Mails about schedules that the portal has paused: to the owner and to the managers, each once."""

from __future__ import annotations

import pytest
from django.core import mail

from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create
from apps.notifications.happenings import happenings_note
from apps.notifications.models import Announcement
from apps.notifications.schedules import schedules_paused_note
from apps.notifications.worker import announcement_send
from apps.removals.contents import namespace_contents
from apps.schedules.models import Schedule
from apps.schedules.services import pause, schedule_pause, schedule_resume
from apps.schedules.worker import schedules_sweep
from apps.webhooks.models import Delivery
from apps.webhooks.services import webhook_create
from tests.integration.schedules.conftest import schedule_of, template_of
from tests.integration.schedules.test_schedule_runs import NIGHT

pytestmark = pytest.mark.django_db


def test_the_owner_and_the_managers_are_told_once_why_it_is_paused(world, ada, bob):
    team = team_create(slug="vision", title="", manager=ada, actor=ada)
    member = Membership.objects.create(namespace=team, user=bob, role=Role.MEMBER)
    schedule = schedule_of(template_of(world, bob, team), bob)
    Schedule.objects.update(next_at=NIGHT)
    member.delete()
    schedules_sweep(NIGHT)
    assert (schedules_paused_note(), schedules_paused_note()) == (1, 0)
    for announcement in Announcement.objects.all():
        for _ in range(2):
            announcement_send(announcement.pk)
    told = {message.to[0]: message for message in mail.outbox}
    assert set(told) == {"ada@example.org", "bob@example.org"}
    assert len(mail.outbox) == 2
    assert all("bob may not launch jobs in vision any more." in one.body for one in told.values())
    assert f"/jobs/schedules/{schedule.pk}/" in told["ada@example.org"].body
    assert "/jobs/" not in told["bob@example.org"].body, "the page is closed to him"
    assert "as its owner" in told["bob@example.org"].body


def test_a_webhook_hears_of_a_pause_by_a_person_and_by_the_portal(world, ada, mine):
    webhook, _ = webhook_create(
        namespace=mine, actor=ada, url="https://hooks.example.org/x", events=["schedule.paused"]
    )  # fmt: skip
    schedule = schedule_of(template_of(world, ada), ada)
    schedule_pause(user=ada, schedule=schedule)
    schedule_pause(user=ada, schedule=schedule)
    schedule_resume(user=ada, schedule=schedule)
    pause(schedule, None, "refused", "5 launches in a row were refused.")
    happenings_note()
    by_ada, by_portal = (one.body["schedule"] for one in Delivery.objects.filter(webhook=webhook).order_by("pk"))
    assert (by_ada["name"], by_ada["owner"], by_ada["by"]) == ("every night", "ada", "ada")
    assert (by_portal["by"], by_portal["message"]) == (None, "5 launches in a row were refused.")
    assert by_ada["url"].endswith(f"/jobs/schedules/{schedule.pk}/")


def test_a_removal_counts_templates_and_schedules(world, ada, mine):
    schedule_of(template_of(world, ada), ada)
    found = namespace_contents(mine)
    assert (found["templates"], found["schedules"]) == (1, 1)
