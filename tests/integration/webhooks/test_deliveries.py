"""From an event of a job to a real receiver: signed, at least once, tried again, and in no one's way."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection

from apps.audit.models import AuditEvent
from apps.dispatch.models import OutboxEvent
from apps.jobs import services as jobs
from apps.notifications.announcements import webhooks_off_note
from apps.notifications.happenings import happenings_note
from apps.notifications.models import Announcement
from apps.notifications.worker import announcement_send
from apps.webhooks import services, worker
from apps.webhooks.fanout import delivery_add
from apps.webhooks.models import Delivery, State, Webhook
from apps.webhooks.sealed_parts import OVERLAP
from apps.webhooks.waiting import waiting_note
from apps.webhooks.worker import ON_THE_WAY, webhook_deliver, webhooks_sweep
from celery_worker import tasks
from tests.integration.webhooks.conftest import deliver_all, hook
from tests.real.receiver import Received, receiver_on
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.outgoing.posting import Reply
from yardmaster.outgoing.targets import policy_of

pytestmark = pytest.mark.django_db


def verify(secret: str, got: Received) -> bool:
    """The recipe of docs/webhooks.md."""
    signed = got.headers["Yardmaster-Timestamp"].encode() + b"." + got.body
    expected = "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return any(hmac.compare_digest(expected, one) for one in got.headers["Yardmaster-Signature"].split(","))


def add(webhook: Webhook, key: str = "one", event: str = "job.failed") -> Delivery:
    delivery_add(webhook, event, {"event": event, "id": key}, key=key)
    return Delivery.objects.get(webhook=webhook, key=key)


def fail(world, ada):
    job = world.launch(ada)
    world.settle()
    world.engine.set(job, Role.WORKER, 1, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    world.until_quiet()
    return world.again(job)


def test_each_step_of_a_job_arrives_signed_and_in_order(world, ada, mine, receiver, clock, settings):
    webhook, secret = hook(mine, ada, receiver.url())
    job = fail(world, ada)
    assert happenings_note() >= 3
    assert not OutboxEvent.objects.filter(topic="happened").exists()
    deliveries = deliver_all(webhook, clock)
    assert [one.headers["Yardmaster-Event"] for one in receiver.got] == ["job.launched", "job.started", "job.failed"]
    assert all(verify(secret, one) and not verify("another", one) for one in receiver.got)
    last = receiver.got[-1]
    body = json.loads(last.body)
    assert last.headers["Yardmaster-Delivery"] == str(deliveries[-1].pk)
    assert (body["version"], body["event"], body["namespace"]) == (
        1, "job.failed", {"id": str(mine.pk), "name": mine.slug},
    )  # fmt: skip
    assert body["job"] == {
        "id": str(job.pk), "name": job.name, "owner": "ada", "attempt": 1, "phase": "FAILED", "reason": "ScriptFailed",
        "message": job.message, "remedy": job.remedy, "url": f"{settings.PUBLIC_URL}/jobs/{job.pk}/",
    }  # fmt: skip
    delivery = Delivery.objects.get(pk=deliveries[-1].pk)
    assert (delivery.state, delivery.status, delivery.tries, delivery.excerpt) == (State.DELIVERED, 200, 1, "ok")


def test_only_what_was_chosen_is_sent_and_nothing_of_other_namespaces(world, ada, bob, mine, receiver, clock):
    webhook, _ = hook(mine, ada, receiver.url(), events=["job.stopped"])
    foreign, _ = hook(bob.personal_namespace, bob, receiver.url("127.0.0.1", path="/bob"))
    off, _ = hook(mine, ada, receiver.url(), is_active=False)
    job = world.launch(ada)
    jobs.job_stop(user=ada, job=job)
    world.until_quiet()
    happenings_note()
    assert happenings_note() == 0
    for one in (webhook, foreign, off):
        deliver_all(one, clock)
    assert [one.headers["Yardmaster-Event"] for one in receiver.got] == ["job.stopped"]


def test_the_events_of_the_outbox_reach_their_reader(
    world, ada, mine, receiver, sent, django_capture_on_commit_callbacks
):
    webhook, _ = hook(mine, ada, receiver.url(), events=["job.launched"])
    with django_capture_on_commit_callbacks(execute=True):
        world.launch(ada)
    assert not [name for name, _ in sent if "deliver" in name], "no message for each launch"
    with django_capture_on_commit_callbacks(execute=True):
        tasks.note_happenings()
    assert ("yardmaster.deliver_webhook", str(webhook.pk)) in sent
    tasks.deliver_webhook(str(webhook.pk))
    assert len(receiver.got) == 1


def test_a_job_that_waits_long_is_told_of_once(world, ada, mine, receiver, clock, settings):
    webhook, _ = hook(mine, ada, receiver.url(), events=["job.waiting"])
    job = world.launch(ada)
    waiting_note(job.queued_at + timedelta(minutes=59))
    assert not Delivery.objects.exists()
    for _ in range(2):
        waiting_note(job.queued_at + timedelta(minutes=61))
    clock.on(hours=2)
    deliver_all(webhook, clock)
    (got,) = receiver.got
    assert json.loads(got.body)["job"]["waits_for"] == 3_660


def test_the_waiting_jobs_of_one_namespace_keep_no_others_from_being_told_of(
    world, ada, bob, mine, receiver, clock, monkeypatch
):
    """One whose receiver takes nothing more is left out, and the others take turns."""
    webhook, _ = hook(mine, ada, receiver.url(), events=["job.waiting"])
    theirs, _ = hook(bob.personal_namespace, bob, receiver.url(), events=["job.waiting"])
    many = [world.launch(ada) for _ in range(3)]
    late = world.launch(bob)
    monkeypatch.setattr("apps.webhooks.waiting.AT_ONCE", 2)
    waiting_note(late.queued_at + timedelta(minutes=61))
    assert sorted(Delivery.objects.values_list("webhook", flat=True)) == sorted([webhook.pk, theirs.pk])
    monkeypatch.setattr("apps.webhooks.waiting.MOST_WAITING", 1)
    monkeypatch.setattr("apps.webhooks.fanout.MOST_WAITING", 1)
    Delivery.objects.filter(webhook=theirs).delete()
    waiting_note(many[0].queued_at + timedelta(minutes=62))
    assert Delivery.objects.filter(webhook=theirs).count() == 1
    assert Delivery.objects.filter(webhook=webhook).count() == 1


def test_a_failure_is_tried_again_later_with_the_same_id(ada, mine, receiver, clock):
    webhook, _ = hook(mine, ada, receiver.url())
    delivery = add(webhook)
    receiver.status, receiver.answer = 500, b"broken"
    assert len(deliver_all(webhook, clock)) == 1
    delivery.refresh_from_db()
    assert (delivery.state, delivery.status, delivery.excerpt) == (State.WAITING, 500, "broken")
    assert delivery.problem == "The receiver answered 500."
    assert delivery.due_at == clock.now + timedelta(seconds=30)
    receiver.status = 204
    clock.on(seconds=29)
    assert deliver_all(webhook, clock) == []
    clock.on(seconds=1)
    assert len(deliver_all(webhook, clock)) == 1
    assert [one.headers["Yardmaster-Delivery"] for one in receiver.got] == [str(delivery.pk)] * 2
    webhook.refresh_from_db()
    assert (webhook.failures, webhook.failing_since) == (0, None)


def test_the_receiver_names_its_pause(ada, mine, receiver, clock):
    webhook, _ = hook(mine, ada, receiver.url())
    delivery = add(webhook)
    receiver.status, receiver.headers = 429, {"Retry-After": "600"}
    deliver_all(webhook, clock)
    delivery.refresh_from_db()
    webhook.refresh_from_db()
    assert delivery.due_at == webhook.rests_until == clock.now + timedelta(seconds=600)


def test_410_switches_it_off_and_drops_what_waits(ada, mine, receiver, clock):
    webhook, _ = hook(mine, ada, receiver.url())
    add(webhook), add(webhook, "two")
    receiver.status = 410
    assert len(deliver_all(webhook, clock)) == 1
    webhook.refresh_from_db()
    assert (webhook.is_active, webhook.off_reason) == (False, "The receiver answered 410: it accepts no more messages.")
    assert set(Delivery.objects.values_list("state", flat=True)) == {State.FAILED}
    assert AuditEvent.objects.filter(action="webhook.off").count() == 1
    assert OutboxEvent.objects.filter(topic=services.WEBHOOK_OFF).count() == 1
    assert webhooks_off_note() == 1
    for announcement in Announcement.objects.all():
        for _ in range(2):
            announcement_send(announcement.pk)
    (message,) = mail.outbox
    assert (message.to, message.subject) == (["ada@example.org"], "[Yardmaster] Webhook of ada switched off")
    assert "answered 410" in message.body
    assert f"/webhooks/{webhook.pk}/" in message.body


def test_a_redirect_is_a_failure_and_leads_nowhere(ada, mine, receiver, clock):
    with receiver_on() as other:
        receiver.status, receiver.headers = 302, {"Location": other.url()}
        webhook, _ = hook(mine, ada, receiver.url())
        delivery = add(webhook)
        deliver_all(webhook, clock)
        assert other.got == []
    delivery.refresh_from_db()
    assert "Redirects are not followed" in delivery.problem


def test_after_a_day_a_message_is_given_up_and_after_five_the_receiver(ada, mine, receiver, clock):
    receiver.status = 503
    webhook, _ = hook(mine, ada, receiver.url())
    delivery, begun = add(webhook), clock.now
    while Delivery.objects.get(pk=delivery.pk).state == State.WAITING:
        clock.on(minutes=30)
        deliver_all(webhook, clock)
    assert timedelta(hours=24) <= clock.now - begun <= timedelta(hours=29)
    webhook.refresh_from_db()
    assert webhook.is_active
    clock.on(days=4)
    add(webhook, "two")
    deliver_all(webhook, clock)
    webhook.refresh_from_db()
    assert not webhook.is_active
    assert "has failed for 5 days" in webhook.off_reason


def test_a_worker_that_is_killed_after_the_send_sends_again_under_the_same_id(ada, mine, receiver, clock):
    class Killed(BaseException):
        pass

    webhook, _ = hook(mine, ada, receiver.url())
    delivery = add(webhook)

    def killed(*given, **more):
        worker.post(*given, **more)
        Webhook.objects.filter(pk=webhook.pk).update(busy_with="of the killed")  # nothing is released
        raise Killed

    with pytest.raises(Killed):
        webhook_deliver(webhook.pk, clock=clock, send=killed)
    assert webhook_deliver(webhook.pk, clock=clock) is None, "another may be sending"
    clock.on(seconds=ON_THE_WAY.total_seconds() + 1)
    assert webhook_deliver(webhook.pk, clock=clock) is not None
    assert [one.headers["Yardmaster-Delivery"] for one in receiver.got] == [str(delivery.pk)] * 2
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == (State.DELIVERED, 2)


def test_a_thousand_messages_to_a_dead_receiver_do_not_delay_a_live_one(ada, bob, mine, receiver, clock, monkeypatch):
    dead, _ = hook(mine, ada, "http://127.0.0.2:9/")
    live, _ = hook(bob.personal_namespace, bob, receiver.url())
    for number in range(1_000):
        delivery_add(dead, "job.failed", {"event": "job.failed", "id": str(number)}, key=str(number))
    add(live)
    attempts = []

    def send(target, *given):
        attempts.append(target.host)
        if target.host == "127.0.0.2":
            raise OSError
        return Reply(200, "", "")

    woken = []
    monkeypatch.setattr(worker, "enqueue", lambda task, subject: woken.append(subject))
    for _ in range(30):
        woken.clear()
        webhooks_sweep(clock.now)
        for subject in woken[:2]:
            webhook_deliver(subject, clock=clock, send=send)
        clock.on(seconds=10)
    assert "127.0.0.1" in attempts[:2], "the live one had its turn at once"
    assert attempts.count("127.0.0.2") < 8, "five minutes of a dead one cost a few attempts"


def test_one_receiver_has_one_message_at_a_time_and_a_namespace_two(ada, mine, receiver, clock):
    first, second, third = (hook(mine, ada, receiver.url(path=f"/{number}"))[0] for number in range(3))
    for one in (first, second, third):
        add(one), add(one, "two")
    seen = []

    def third_send(*given):
        seen.append(webhook_deliver(third.pk, clock=clock))
        return Reply(200, "", "")

    def second_send(*given):
        seen.append(webhook_deliver(first.pk, clock=clock))
        return third_send()

    def first_send(*given):
        assert webhook_deliver(second.pk, clock=clock, send=second_send) is not None
        return Reply(200, "", "")

    assert webhook_deliver(first.pk, clock=clock, send=first_send) is not None
    assert seen == [None, None]
    assert receiver.got == []


def test_nothing_is_sent_within_a_transaction(ada, mine, receiver, clock):
    webhook, _ = hook(mine, ada, receiver.url())
    add(webhook)
    depth = len(connection.savepoint_ids)

    def watchful(*given):
        assert len(connection.savepoint_ids) == depth
        return Reply(200, "", "")

    assert webhook_deliver(webhook.pk, clock=clock, send=watchful).state == State.DELIVERED


def test_a_slow_receiver_is_cut_off_and_a_bug_is_neither_lost_nor_unseen(ada, mine, receiver, clock, settings):
    policy = policy_of(["127.0.0.0/8"], allow_http=True, ports=frozenset(range(65_536)), seconds=0.3)
    settings.YARDMASTER_OUTGOING = replace(settings.YARDMASTER_OUTGOING, policy=policy)
    receiver.slow = True
    webhook, _ = hook(mine, ada, receiver.url())
    delivery = add(webhook)
    deliver_all(webhook, clock)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.status) == (State.WAITING, None)
    assert delivery.problem == "127.0.0.1 did not answer within 0.3 seconds."

    def broken(*given):
        raise RuntimeError

    clock.on(hours=1)
    webhook_deliver(webhook.pk, clock=clock, send=broken)
    delivery.refresh_from_db()
    assert "could not create this message" in delivery.problem


def test_a_name_that_leads_inside_is_refused_at_the_time_of_sending(ada, mine, clock, settings, monkeypatch):
    settings.YARDMASTER_OUTGOING = replace(settings.YARDMASTER_OUTGOING, policy=policy_of([]))
    webhook, _ = hook(mine, ada, "https://hooks.example.org/a")
    delivery = add(webhook)
    monkeypatch.setattr(
        "yardmaster.outgoing.posting.addresses_of.__code__", (lambda host, port: ["169.254.169.254"]).__code__
    )
    deliver_all(webhook, clock)
    delivery.refresh_from_db()
    assert "has an address that nothing is sent to: 169.254.169.254" in delivery.problem


def test_a_rotated_secret_overlaps_for_a_day(ada, mine, receiver, clock):
    webhook, old = hook(mine, ada, receiver.url())
    new = services.secret_rotate(webhook=webhook, actor=ada)
    add(webhook), add(webhook, "two")
    webhook_deliver(webhook.pk, clock=clock)
    clock.on(seconds=OVERLAP.total_seconds() + 60)
    webhook_deliver(webhook.pk, clock=clock)
    first, second = receiver.got
    assert verify(new, first)
    assert verify(old, first)
    assert verify(new, second)
    assert not verify(old, second)


def test_the_log_is_bounded(ada, mine, receiver, clock, monkeypatch):
    monkeypatch.setattr(worker, "KEPT_MOST", 3)
    webhook, _ = hook(mine, ada, receiver.url())
    for number in range(5):
        add(webhook, str(number))
    deliver_all(webhook, clock)
    webhooks_sweep(clock.now)
    assert set(Delivery.objects.values_list("key", flat=True)) == {"2", "3", "4"}
    webhooks_sweep(clock.now + timedelta(days=31))
    assert not Delivery.objects.exists()


def test_a_chat_gets_its_own_form_and_no_signature(ada, mine, receiver, clock):
    webhook, secret = hook(mine, ada, receiver.url(), format="slack")
    assert secret == ""
    services.send_test(webhook=webhook, actor=ada)
    deliver_all(webhook, clock)
    (got,) = receiver.got
    assert json.loads(got.body)["text"] == "Test message from Yardmaster"
    assert not [name for name in got.headers if name.startswith("Yardmaster")]
