"""The link in each mail of a kind that may be switched off: what it does, and what it never does."""

from __future__ import annotations

from datetime import timedelta
from email import message_from_bytes

import pytest
from django.core import mail, signing
from django.test import Client

from apps.audit.models import AuditEvent
from apps.notifications import unsubscribe_pages, unsubscribing
from apps.notifications.announcements import mail_write
from apps.notifications.choosing import all_choices_of, exception_choose, notices_choose
from apps.notifications.digests import digests_note
from apps.notifications.models import Announcement, Event, Notice
from apps.notifications.own_chat import own_chat_set
from apps.notifications.services import notice_write
from apps.notifications.telling import announce
from apps.notifications.unsubscribing import unsubscribe_token, unsubscription_of
from apps.notifications.worker import announcement_send, notice_send
from apps.webhooks.models import Format
from yardmaster.outgoing.notices import KINDS, Choice, Pace, Way

ONE_CLICK = {"List-Unsubscribe": "One-Click"}
FORM = "application/x-www-form-urlencoded"


def send_all(world) -> None:
    for notice in Notice.objects.all():
        notice_send(notice.pk, clock=world.clock)
    for one in Announcement.objects.all():
        announcement_send(one.pk, clock=world.clock)


def failed_mail(world, ada):
    notice_write(world.launch(ada), Event.FAILED, world.now)
    send_all(world)
    return mail.outbox[-1]


def path_of(message) -> str:
    """The link's path, from the header as it goes over the wire."""
    header = str(message_from_bytes(message.message().as_bytes())["List-Unsubscribe"]).strip()
    assert header.startswith("<http"), header
    assert header.endswith("/>"), header
    return "/" + header.strip("<>").split("/", 3)[3]


def shown(answer) -> str:
    """The card of the page: the rest has a nonce of its own each time."""
    return answer.content.decode().partition("<h1")[2].partition("theme")[0]


def way_of(user, kind: str) -> Way:
    return all_choices_of(user).by_kind[kind].way


def strict() -> Client:
    """A browser, or a mail program, without a session, and a portal that asks for CSRF tokens."""
    return Client(enforce_csrf_checks=True)


def test_a_mail_about_a_job_has_the_headers_and_the_link_in_its_text(world, ada):
    message = failed_mail(world, ada)
    raw = message_from_bytes(message.message().as_bytes())
    assert raw["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert path_of(message).startswith("/unsubscribe/")
    last = message.body.splitlines()[-1]
    assert last.startswith("Stop e-mails of this kind: http")
    assert last.endswith(path_of(message))


def test_one_click_without_signing_in_switches_the_kind_off_and_says_the_way_back(world, ada):
    path = path_of(failed_mail(world, ada))
    answer = strict().post(path, ONE_CLICK)
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "These e-mails are off" in page
    assert KINDS["job.failed"] in page
    assert "/account/notifications/" in page
    assert way_of(ada, "job.failed") is Way.NONE
    notice_write(world.launch(ada), Event.FAILED, world.now)
    send_all(world)
    assert len(mail.outbox) == 1


def test_a_scanner_that_follows_the_link_changes_nothing_and_sees_no_name(world, ada):
    path = path_of(failed_mail(world, ada))
    for ask in (strict().get, strict().head):
        assert ask(path).status_code == 200
    page = strict().get(path).content.decode()
    assert "Stop these e-mails?" in page
    assert ada.username not in page.replace(path, "")
    assert ada.email not in page
    assert way_of(ada, "job.failed") is Way.MAIL
    assert not AuditEvent.objects.filter(action="notification.unsubscribe").exists()


def test_a_digest_switches_off_the_kinds_that_it_tells_of_and_no_other(world, ada):
    hourly = Choice(Way.MAIL, Pace.HOURLY)
    notices_choose(ada, dict.fromkeys(["job.failed", "job.succeeded", "job.stopped"], hourly))
    for event in (Event.FAILED, Event.SUCCEEDED):
        notice_write(world.launch(ada, name=event), event, world.now)
    world.now += timedelta(hours=25)
    digests_note(world.now)
    send_all(world)
    assert "Stop e-mails of these kinds: " in mail.outbox[-1].body
    strict().post(path_of(mail.outbox[-1]), ONE_CLICK)
    ways = [way_of(ada, kind) for kind in ("job.failed", "job.succeeded", "job.stopped")]
    assert ways == [Way.NONE, Way.NONE, Way.MAIL]


def test_it_counts_in_single_namespaces_too_and_leaves_the_chat(world, ada):
    job = world.launch(ada)
    own_chat_set(user=ada, url="https://hooks.slack.com/services/T/B/secret", format=Format.SLACK)
    notices_choose(ada, {"job.failed": Choice(Way.CHAT)})
    exception_choose(ada, "job.failed", job.namespace, Choice(Way.MAIL))
    strict().post(f"/unsubscribe/{unsubscribe_token(ada, ['job.failed'])}/", ONE_CLICK)
    choices = all_choices_of(ada)
    assert choices.of("job.failed", job.namespace).way is Way.NONE
    assert choices.by_kind["job.failed"].way is Way.CHAT


def test_it_is_audited_once_with_what_was_before(world, ada):
    path = path_of(failed_mail(world, ada))
    for _ in range(3):
        assert strict().post(path, ONE_CLICK).status_code == 200
    event = AuditEvent.objects.get(action="notification.unsubscribe")
    assert event.subject == f"user:{ada.pk}"
    assert event.facts["kinds"] == ["job.failed"]
    assert event.facts["kinds_before"] == ["job.failed: mail"]
    assert event.actor_id is None, "who holds a link has not shown who they are"


def test_every_bad_link_answers_the_same(world, ada, monkeypatch):
    good = unsubscribe_token(ada, ["job.failed"])
    unknown = signing.dumps(["0" * 32, "x", "job.failed"], salt="notifications.unsubscribe")
    odd = [signing.dumps(said, salt="notifications.unsubscribe") for said in ([], ["x", 1, 2], [1], {"a": 1}, None)]
    of_other_use = signing.dumps([ada.pk.hex, "x", "job.failed"], salt="something.else")
    of_no_kind = unsubscribe_token(ada, ["job.unknown"])
    bad = [good[:-1], "x" * 5_000, "unknown", unknown, *odd, of_other_use, of_no_kind]
    answers = {shown(strict().post(f"/unsubscribe/{one}/", ONE_CLICK)) for one in bad}
    statuses = {strict().get(f"/unsubscribe/{one}/").status_code for one in bad}
    assert (len(answers), statuses) == (1, {410})
    assert way_of(ada, "job.failed") is Way.MAIL
    monkeypatch.setattr(unsubscribing, "LASTS", timedelta(seconds=-1))
    assert unsubscription_of(good) is None, "too old"


@pytest.mark.parametrize("change", [{"email": "new@example.org"}, {"is_active": False}, {"email": ""}])
def test_a_link_ends_with_the_address_and_the_account(world, ada, change):
    token = unsubscribe_token(ada, ["job.failed"])
    for name, value in change.items():
        setattr(ada, name, value)
    ada.save()
    assert strict().post(f"/unsubscribe/{token}/", ONE_CLICK).status_code == 410
    assert way_of(ada, "job.failed") is Way.MAIL


def test_too_many_from_one_address_are_refused(world, ada, monkeypatch):
    monkeypatch.setattr(unsubscribe_pages, "PER_MINUTE", 3)
    path = f"/unsubscribe/{unsubscribe_token(ada, ['job.failed'])}/"
    client = Client(REMOTE_ADDR="192.0.2.77")
    assert [client.get(path).status_code for _ in range(5)] == [200, 200, 200, 429, 429]


def test_a_mail_that_cannot_be_switched_off_has_no_link(world, ada):
    mail_write(
        ada, key="webhook.off x", subject="[Yardmaster] Your chat was switched off", text="Text\n", now=world.now
    )
    send_all(world)
    assert "List-Unsubscribe" not in mail.outbox[-1].message()
    assert "unsubscribe" not in mail.outbox[-1].body


@pytest.mark.parametrize("kind", [one for one in KINDS if not one.startswith(("job.", "session."))])
def test_every_announcement_of_a_kind_has_the_link(world, ada, kind):
    announce(
        ada, kind, None, key=f"{kind} 1", subject="Subject", text="Text\n\n-- \nYou get this.\n", url="/", now=world.now
    )
    send_all(world)
    (message,) = mail.outbox
    strict().post(path_of(message), ONE_CLICK)
    assert message.body.splitlines()[-1].endswith(path_of(message))
    assert way_of(ada, kind) is Way.NONE


def test_the_longest_link_fits_into_a_header_and_a_row(world, ada):
    assert len(",".join(KINDS)) <= Announcement._meta.get_field("kinds").max_length
    assert len(unsubscribe_token(ada, list(KINDS))) < unsubscribing.LONGEST_TOKEN
