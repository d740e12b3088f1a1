"""Mails go to those who may see what is in them."""

from __future__ import annotations

from apps.namespaces.models import Membership, Namespace, Role
from apps.notifications.choosing import choices_set
from apps.notifications.models import Event, Notice
from apps.notifications.services import notice_write
from apps.notifications.worker import notice_send
from tests.integration.jobs.conftest import engine_settings, stores, world

__all__ = ["engine_settings", "stores", "world"]


def test_who_has_left_the_team_gets_no_mail_of_its_jobs(world, ada, mailoutbox):
    team = Namespace.objects.create(slug="team")
    membership = Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER)
    job = world.launch(ada, namespace=team)
    world.settle()
    choices_set(user=ada, on_success=True, on_failure=True, on_stop=True, on_wait=False, wait_minutes=60, with_log=True)
    notice_write(world.again(job), Event.FAILED, world.now)
    membership.delete()
    notice = Notice.objects.get()
    notice_send(notice.pk, clock=world.clock)
    notice.refresh_from_db()
    assert (mailoutbox, notice.sent_at, notice.due_at) == ([], None, None)
    assert notice.problem == "You no longer have access to the job."
