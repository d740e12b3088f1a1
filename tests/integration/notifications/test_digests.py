"""Notifications as each person chooses: by mail or to their chat, at once or in a digest, or none."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail

from apps.accounts.services import user_lock_out
from apps.errors import TooMany
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create
from apps.notifications import digests
from apps.notifications.choosing import all_choices_of, choices_set, exception_choose, notices_choose
from apps.notifications.digests import digests_note
from apps.notifications.models import Announcement, Event, Note, Notice
from apps.notifications.own_chat import own_chat_remove, own_chat_set, own_chat_test
from apps.notifications.services import notice_write
from apps.notifications.telling import announce
from apps.notifications.worker import announcement_send, notice_send, notices_sweep
from apps.webhooks.models import Delivery, Format, Webhook
from apps.webhooks.services import TESTS
from apps.webhooks.worker import webhook_deliver
from yardmaster.outgoing.notices import Choice, Pace, Way
from yardmaster.outgoing.posting import Reply

SLACK = "https://hooks.slack.com/services/T000/B000/secret-of-ada"
PAGE, API = "/account/notifications/", "/api/v1/account/notifications/"
HOURLY = Choice(Way.MAIL, Pace.HOURLY)


def send_all(world) -> None:
    for notice in Notice.objects.all():
        notice_send(notice.pk, clock=world.clock)
    for one in Announcement.objects.all():
        announcement_send(one.pk, clock=world.clock)


def jobs(world, ada, count: int, **changes) -> list:
    return [world.launch(ada, name=f"run-{number}", **changes) for number in range(count)]


def later(world) -> None:
    world.now += timedelta(hours=25)


def test_a_digest_is_one_mail_by_namespace_and_kind_with_links(world, ada):
    notices_choose(ada, {"job.failed": HOURLY, "job.succeeded": HOURLY})
    for job, event in zip(jobs(world, ada, 3), [Event.FAILED, Event.SUCCEEDED, Event.FAILED], strict=True):
        notice_write(job, event, world.now)
    assert digests_note(world.now) == 0, "it is not due"
    later(world)
    assert digests_note(world.now) == 1
    assert digests_note(world.now) == 0, "once"
    send_all(world)
    (message,) = mail.outbox
    assert (message.subject, message.to) == ("[Yardmaster] 3 notifications", [ada.email])
    assert "ada: A job of mine failed (2)" in message.body
    assert "ada: A job of mine succeeded (1)" in message.body
    assert message.body.count("/jobs/") == 3
    assert PAGE in message.body


def test_more_than_so_many_of_a_kind_in_an_hour_become_a_digest(world, ada):
    notices_choose(ada, {}, flood=3)
    for job in jobs(world, ada, 5):
        notice_write(job, Event.FAILED, world.now)
    send_all(world)
    assert len(mail.outbox) == 3
    later(world)
    digests_note(world.now)
    send_all(world)
    assert [one.subject for one in mail.outbox[3:]] == ["[Yardmaster] 2 notifications"]


def test_a_digest_that_fails_halfway_is_made_again_and_nothing_is_lost(world, ada, monkeypatch):
    notices_choose(ada, {"job.failed": HOURLY})
    notice_write(jobs(world, ada, 1)[0], Event.FAILED, world.now)
    later(world)
    write = digests.mail_write
    monkeypatch.setattr(digests, "mail_write", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        digests_note(world.now)
    assert Note.objects.get().due_at is not None
    monkeypatch.setattr(digests, "mail_write", write)
    notices_sweep(world.now)
    notices_sweep(world.now)
    assert Announcement.objects.filter(key__startswith="digest").count() == 1


def test_a_chat_gets_what_was_chosen_for_it_at_once_and_in_a_digest(world, ada):
    chat, _ = own_chat_set(user=ada, url=SLACK, format=Format.SLACK)
    notices_choose(ada, {"job.failed": Choice(Way.CHAT), "job.succeeded": Choice(Way.CHAT, Pace.DAILY)})
    first, second = jobs(world, ada, 2)
    notice_write(first, Event.FAILED, world.now)
    notice_write(second, Event.SUCCEEDED, world.now)
    sent = []

    def send(target, body, headers, policy) -> Reply:
        sent.append(body.decode())
        return Reply(200, "ok", "")

    webhook_deliver(chat.pk, send=send)
    assert "Job failed: run-0" in sent[0]
    later(world)
    assert digests_note(world.now) == 1
    webhook_deliver(chat.pk, send=send)
    assert "1 notification" in sent[1]
    assert "run-1" in sent[1]
    assert (len(sent), Announcement.objects.count()) == (2, 0)
    assert SLACK.encode() not in bytes(Webhook.objects.get().sealed)


def test_a_chat_that_is_gone_leaves_its_digest_to_the_mail(world, ada):
    own_chat_set(user=ada, url=SLACK, format=Format.SLACK)
    notices_choose(ada, {"job.failed": Choice(Way.CHAT, Pace.HOURLY)})
    notice_write(jobs(world, ada, 1)[0], Event.FAILED, world.now)
    own_chat_remove(user=ada)
    later(world)
    assert digests_note(world.now) == 1
    assert Announcement.objects.get().user == ada


def test_people_who_are_locked_out_or_may_not_see_the_namespace_any_more_get_nothing(world, ada, bob, admin):
    team = team_create(slug="vision", title="", manager=bob, actor=bob)
    Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER)
    for user in (ada, bob):
        notices_choose(user, {"budget.warned": HOURLY})
        announce(user, "budget.warned", team, key="budget.warned 1", subject="x", text="x", url="", now=world.now)
    Membership.objects.filter(namespace=team, user=ada).delete()
    Membership.objects.create(namespace=team, user=admin, role=Role.MANAGER)
    user_lock_out(user=bob, actor=admin)
    later(world)
    assert digests_note(world.now) == 0
    assert not Announcement.objects.exists()
    bob.refresh_from_db()
    announce(bob, "budget.warned", team, key="budget.warned 2", subject="x", text="x", url="", now=world.now)
    assert Note.objects.count() == 2


def test_who_has_left_a_namespace_is_told_nothing_of_it_at_once(world, ada, bob, admin):
    team = team_create(slug="lab", title="Lab", manager=admin, actor=admin)
    own_chat_set(user=bob, format=Format.SLACK, url=SLACK)
    notices_choose(bob, {"sweep.ended": Choice(Way.CHAT, Pace.NOW)})

    def tell(number: int) -> None:
        words = {"subject": "The sweep has ended", "text": "Best 0.9", "url": "https://portal.example.org/"}
        announce(bob, "sweep.ended", team, key=f"sweep.ended {number}", now=world.now, **words)

    tell(1)
    assert Delivery.objects.count() == 0
    Membership.objects.create(namespace=team, user=bob, role=Role.MEMBER)
    tell(2)
    assert Delivery.objects.count() == 1


def test_a_namespace_may_have_a_choice_of_its_own(world, ada):
    exception_choose(ada, "job.failed", ada.personal_namespace, Choice(Way.NONE))
    notice_write(jobs(world, ada, 1)[0], Event.FAILED, world.now)
    assert not Notice.objects.exists()
    exception_choose(ada, "job.failed", ada.personal_namespace, None)
    notice_write(world.launch(ada), Event.FAILED, world.now)
    assert Notice.objects.get().sent_by == ""


def test_a_long_wait_is_told_once_also_where_one_namespace_alone_wants_it(world, ada):
    exception_choose(ada, "job.waiting", ada.personal_namespace, HOURLY)
    assert all_choices_of(ada).by_kind["job.waiting"].way is Way.NONE
    job = world.launch(ada)
    world.now = job.queued_at + timedelta(hours=2)
    notices_sweep(world.now)
    notices_sweep(world.now)
    assert Note.objects.filter(kind="job.waiting").count() == 1


def test_a_session_that_ends_is_a_kind_of_its_own(world, ada):
    choices_set(user=ada, on_success=True, on_failure=True, on_stop=True, on_wait=False, wait_minutes=60, with_log=True)
    job = world.launch(ada)
    job.strategy = "service"
    notice_write(job, Event.STOPPED, world.now)
    assert not Notice.objects.exists(), "usually off"
    notices_choose(ada, {"session.ended": Choice()})
    notice_write(job, Event.STOPPED, world.now)
    assert Notice.objects.count() == 1


def test_the_api_reads_and_changes_the_choices(ada, signed_in):
    me = signed_in(ada)
    found = me.get(API).json()
    assert {one["kind"]: one["way"] for one in found["choices"]}["job.failed"] == "mail"
    choices = [
        {"kind": "job.failed", "way": "chat", "pace": "daily"},
        {"kind": "job.failed", "namespace": ada.personal_namespace.slug, "way": "none"},
    ]
    answer = me.patch(API, {"choices": choices, "flood": 5, "daily_hour": 7}, format="json")
    assert answer.status_code == 200, answer.json()
    assert (answer.json()["flood"], answer.json()["daily_hour"]) == (5, 7)
    special = {"kind": "job.failed", "namespace": ada.personal_namespace.slug, "way": "none", "pace": "now"}
    assert special in answer.json()["choices"]
    answer = me.patch(API, {"choices": [{"kind": "nonsense", "way": "mail"}]}, format="json")
    assert answer.status_code == 400
    foreign = {"kind": "job.failed", "namespace": "no-such-namespace", "way": "none"}
    assert me.patch(API, {"choices": [foreign]}, format="json").status_code == 404


def test_the_api_sets_tests_and_removes_the_chat(ada, signed_in):
    me = signed_in(ada)
    assert me.post(f"{API}chat/test/").status_code == 404
    wrong = me.put(f"{API}chat/", {"url": "https://10.0.0.1/x", "format": "slack"}, format="json")
    assert (wrong.status_code, wrong.json()["errors"][0]["code"]) == (400, "address_not_allowed")
    made = me.put(f"{API}chat/", {"url": SLACK, "format": "slack"}, format="json")
    assert made.status_code == 200, made.json()
    assert "secret-of-ada" not in str(made.json())
    assert me.post(f"{API}chat/test/").status_code == 202
    assert Delivery.objects.get().event == "test"
    assert me.delete(f"{API}chat/").status_code == 204
    assert me.get(API).json()["chat"] is None


def test_the_page_keeps_choices_and_the_chat(client, ada):
    client.force_login(ada)
    assert "A job of mine failed" in client.get(PAGE).content.decode()
    data = {"way-job.failed": "chat", "pace-job.failed": "daily", "wait_minutes": "60", "daily_hour": "6", "flood": "4"}
    assert client.post(PAGE, data).status_code == 302
    found = all_choices_of(ada)
    assert found.by_kind["job.failed"] == Choice(Way.CHAT, Pace.DAILY)
    assert (found.mail.daily_hour, found.mail.flood, found.mail.with_log) == (6, 4, False)
    assert client.post(PAGE, data | {"flood": "-1"}).status_code == 422
    client.post(f"{PAGE}chat/", {"action": "save", "url": SLACK, "format": "mattermost"})
    page = client.get(PAGE).content.decode()
    assert "secret-of-ada" not in page
    assert "hooks.slack.com" in page
    client.post(f"{PAGE}chat/", {"action": "test"})
    assert Delivery.objects.count() == 1
    space = str(ada.personal_namespace.pk)
    client.post(f"{PAGE}exception/", {"namespace": space, "kind": "job.failed", "way": "none", "pace": "now"})
    assert len(all_choices_of(ada).exceptions) == 1
    client.post(f"{PAGE}exception/", {"namespace": space, "kind": "job.failed", "way": ""})
    assert all_choices_of(ada).exceptions == ()


def test_a_test_of_the_chat_has_a_rate(ada):
    own_chat_set(user=ada, url=SLACK, format=Format.SLACK)
    for _ in range(TESTS):
        own_chat_test(user=ada)
    with pytest.raises(TooMany):
        own_chat_test(user=ada)
