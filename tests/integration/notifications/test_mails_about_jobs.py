"""A mail at the end of a run: to whom wants it, with what helps, once, and never in the way of the job."""

from __future__ import annotations

import smtplib
from datetime import timedelta

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.db import connection

from apps.dispatch import messages
from apps.dispatch.outbox import ATTEMPT_DECIDED
from apps.jobs import services as jobs
from apps.jobs.models import Job, JobAttempt
from apps.notifications import worker as sending
from apps.notifications.choosing import choices_set
from apps.notifications.models import Event, Notice
from apps.notifications.services import notice_write, verdicts_note
from apps.notifications.worker import FIRST_PAUSE, GIVE_UP_AFTER, ON_THE_WAY, notice_send, notices_sweep
from apps.stores import log_store
from celery_worker import tasks
from tests.integration.pages.test_account_pages import HOSTILE
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.logs.keys import StreamKey

pytestmark = pytest.mark.django_db
TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "ValueError: no such shard",
]


class AwayBackend(EmailBackend):
    """A mail server that does not answer."""

    def send_messages(self, messages):
        raise ConnectionRefusedError("connection refused")


class GreyBackend(EmailBackend):
    """A mail server that takes no mail from strangers at once."""

    code = 450

    def send_messages(self, messages):
        raise smtplib.SMTPRecipientsRefused({messages[0].to[0]: (self.code, b"not this address")})


class RefusingBackend(GreyBackend):
    """A mail server that knows the address is none."""

    code = 550


class WatchfulBackend(EmailBackend):
    """A mail server that must never be spoken to inside a transaction."""

    depth = 0

    def send_messages(self, messages):
        assert len(connection.savepoint_ids) <= WatchfulBackend.depth
        return super().send_messages(messages)


def backend(settings, kind) -> None:
    settings.EMAIL_BACKEND = f"{__name__}.{kind.__name__}"


def choose(user, **changes) -> None:
    wish = {
        "on_success": True,
        "on_failure": True,
        "on_stop": True,
        "on_wait": True,
        "wait_minutes": 60,
        "with_log": True,
    }
    choices_set(user=user, **(wish | changes))


def fail(world, job) -> Job:
    job = fail_unread(world, job)
    verdicts_note()
    return job


def fail_unread(world, job) -> Job:
    world.settle()
    stream = StreamKey(job.pk, job.attempt, Role.WORKER, 1)
    data = "".join(f"{line}\n" for line in ["step 1", *TRACEBACK]).encode()
    log_store().append(stream, 0, data, [(0, 1_700_000_000_000)])
    world.engine.set(job, Role.WORKER, 1, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    world.until_quiet()
    return world.again(job)


def until_noted(world) -> None:
    """Until nothing more happens, and every verdict was read."""
    world.until_quiet()
    verdicts_note()


def send_all(world) -> None:
    for notice in Notice.objects.all():
        notice_send(notice.pk, clock=world.clock)


def test_a_failure_is_told_with_the_reason_the_remedy_the_last_lines_and_a_link(world, ada):
    """kubeflow/pipelines#4573, #11412: mail on failure, with the log."""
    job = fail(world, world.launch(ada))
    send_all(world)
    [message] = mail.outbox
    assert message.to == ["ada@example.org"]
    assert message.subject == "[Yardmaster] digits failed: ScriptFailed"
    for said in (
        job.message,
        job.remedy,
        "ValueError: no such shard",
        "Last log lines of worker-1",
        f"/jobs/{job.pk}/",
    ):
        assert said in message.body
    assert "/account/notifications/" in message.body


def test_who_chose_nothing_is_told_of_failures_only(world, ada):
    good = world.launch(ada)
    world.settle()
    world.engine.succeed(good)
    until_noted(world)
    assert not Notice.objects.exists()
    fail(world, world.launch(ada))
    assert [one.event for one in Notice.objects.all()] == [Event.FAILED]


@pytest.mark.parametrize("ending", ["succeeded", "stopped", "failed"])
@pytest.mark.parametrize("wanted", [True, False])
def test_each_ending_is_told_to_who_chose_it(world, ada, ending, wanted):
    choose(ada, on_success=wanted, on_stop=wanted, on_failure=wanted)
    job = world.launch(ada)
    world.settle()
    if ending == "succeeded":
        world.engine.succeed(job)
    elif ending == "stopped":
        jobs.job_stop(user=ada, job=world.again(job))
    else:
        world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    until_noted(world)
    send_all(world)
    assert [ending in message.subject for message in mail.outbox] == [True] * wanted


def test_lines_of_the_log_stay_in_the_portal_where_that_was_chosen(world, ada):
    choose(ada, with_log=False)
    fail(world, world.launch(ada))
    send_all(world)
    assert "no such shard" not in mail.outbox[0].body
    assert "exit code 1" in mail.outbox[0].body


def test_nobody_without_an_address_or_locked_out_is_written_to(world, ada, bob):
    ada.email = ""
    ada.save()
    fail(world, world.launch(ada))
    job = world.launch(bob)
    bob.is_active = False
    bob.save()
    fail(world, job)
    assert not Notice.objects.exists()


class TestOnce:
    def test_however_often_it_is_woken_one_mail_goes(self, world, ada):
        fail(world, world.launch(ada))
        for _ in range(3):
            send_all(world)
            world.now += ON_THE_WAY * 2
        assert len(mail.outbox) == 1

    def test_whoever_comes_while_it_is_being_sent_leaves_it_alone(self, world, ada, settings, monkeypatch):
        fail(world, world.launch(ada))
        notice = Notice.objects.get()
        real = EmailBackend.send_messages

        def send_and_be_woken_again(backend, messages):
            notice_send(notice.pk, clock=world.clock)
            return real(backend, messages)

        monkeypatch.setattr(EmailBackend, "send_messages", send_and_be_woken_again)
        notice_send(notice.pk, clock=world.clock)
        assert len(mail.outbox) == 1

    def test_the_same_event_of_the_same_attempt_is_written_down_once(self, world, ada):
        job = fail(world, world.launch(ada))
        notice_write(job, Event.FAILED, world.now)
        assert Notice.objects.count() == 1

    def test_each_attempt_is_told_of(self, world, ada):
        job = fail(world, world.launch(ada))
        job = jobs.job_retry(user=ada, job=job)
        world.now = max(world.now, job.next_look_at)
        fail(world, world.again(job))
        send_all(world)
        assert ["attempt 2" in message.body for message in mail.outbox] == [False, True]

    def test_a_mail_that_may_have_gone_goes_again_under_the_same_id(self, world, ada):
        """A worker killed between the server's yes and its own note: mail programs know the two for one."""
        fail(world, world.launch(ada))
        send_all(world)
        Notice.objects.update(sent_at=None, due_at=world.now)
        send_all(world)
        first, second = (message.extra_headers["Message-ID"] for message in mail.outbox)
        assert first == second
        assert str(Notice.objects.get().pk) in first


class TestTrouble:
    def test_a_mail_server_that_is_away_delays_the_mail_and_not_the_job(self, world, ada, settings):
        settings_backend = settings.EMAIL_BACKEND
        backend(settings, AwayBackend)
        job = fail(world, world.launch(ada))
        assert job.is_over
        send_all(world)
        notice = Notice.objects.get()
        assert notice.problem == "connection refused"
        assert notice.due_at == world.now + FIRST_PAUSE
        settings.EMAIL_BACKEND = settings_backend
        send_all(world)
        assert mail.outbox == []
        world.now += FIRST_PAUSE
        send_all(world)
        assert len(mail.outbox) == 1
        assert Notice.objects.get().problem == ""

    def test_the_pauses_grow_and_end(self, world, ada, settings):
        backend(settings, AwayBackend)
        fail(world, world.launch(ada))
        pauses = []
        while (due := Notice.objects.get().due_at) is not None:
            pauses.append(due - world.now)
            world.now = max(world.now, due)
            send_all(world)
        assert pauses[1] < pauses[3] < pauses[-1] == timedelta(hours=1)
        assert Notice.objects.get().is_given_up
        assert world.now - Notice.objects.get().created_at >= GIVE_UP_AFTER

    def test_an_address_that_is_refused_for_good_is_not_tried_again_and_its_owner_is_told(
        self, world, ada, settings, client
    ):
        backend(settings, RefusingBackend)
        fail(world, world.launch(ada))
        send_all(world)
        assert Notice.objects.get().is_given_up
        client.force_login(ada)
        assert "550 not this address" in client.get("/account/notifications/").content.decode()

    def test_an_address_that_is_refused_for_now_is_tried_again(self, world, ada, settings):
        backend(settings, GreyBackend)
        fail(world, world.launch(ada))
        send_all(world)
        assert Notice.objects.get().due_at == world.now + FIRST_PAUSE

    def test_the_mail_server_is_never_spoken_to_inside_a_transaction(self, world, ada, settings):
        backend(settings, WatchfulBackend)
        WatchfulBackend.depth = len(connection.savepoint_ids)
        fail(world, world.launch(ada))
        send_all(world)
        assert len(mail.outbox) == 1

    def test_what_a_script_prints_and_people_write_makes_no_header_and_no_control_character(self, world, ada):
        job = fail(world, world.launch(ada))
        Job.objects.filter(pk=job.pk).update(name=f"a\r\nBcc: eve@example.org\r\n{HOSTILE}" + "x" * 10_000)
        send_all(world)
        [message] = mail.outbox
        assert "\n" not in message.subject
        assert len(message.subject) < 200
        assert "\u202e" not in message.subject + message.body
        assert message.recipients() == ["ada@example.org"]

    def test_a_log_that_does_not_answer_costs_the_mail_its_lines(self, world, ada, monkeypatch):
        class LogIsAway:
            def read(self, *place):
                raise Unavailable("the disk is gone")

        fail(world, world.launch(ada))
        monkeypatch.setattr(sending, "log_store", LogIsAway)
        send_all(world)
        assert "no such shard" not in mail.outbox[0].body

    def test_a_role_of_another_release_costs_the_mail_the_lines_of_its_task(self, world, ada):
        job = fail(world, world.launch(ada))
        JobAttempt.objects.filter(job=job).update(role="boss", index=0)
        send_all(world)
        assert "no such shard" not in mail.outbox[0].body

    def test_a_mail_that_cannot_be_written_is_logged_and_given_up_in_the_end(self, world, ada, caplog, monkeypatch):
        class LogIsBroken:
            def read(self, *place):
                raise ValueError("broken")

        fail(world, world.launch(ada))
        monkeypatch.setattr(sending, "log_store", LogIsBroken)
        send_all(world)
        assert "could not be written" in caplog.text
        assert Notice.objects.get().due_at == world.now + FIRST_PAUSE
        world.now += GIVE_UP_AFTER
        send_all(world)
        assert Notice.objects.get().is_given_up

    def test_a_deleted_job_is_not_told_of(self, world, ada):
        job = fail(world, world.launch(ada))
        jobs.job_delete(user=ada, job=job)
        send_all(world)
        assert mail.outbox == []


class TestWaiting:
    def launch_and_wait(self, world, user, **time) -> Job:
        job = world.launch(user)
        world.now += timedelta(**time)
        return world.again(job)

    def test_a_job_that_waits_for_long_is_told_of_once(self, world, ada):
        """kueue#13159: how long will it wait. At least nobody has to keep looking."""
        choose(ada, wait_minutes=60)
        job = self.launch_and_wait(world, ada, minutes=59)
        notices_sweep(world.now)
        assert not Notice.objects.exists()
        Job.objects.filter(pk=job.pk).update(reason="WaitingForQuota", message="The namespace holds 4 of 4 cores.")
        world.now += timedelta(minutes=1)
        notices_sweep(world.now)
        notices_sweep(world.now)
        send_all(world)
        [message] = mail.outbox
        assert message.subject == "[Yardmaster] digits is still queued"
        assert "for 1 h 0 min" in message.body
        assert "The namespace holds 4 of 4 cores." in message.body

    def test_who_did_not_choose_it_or_a_longer_wait_hears_nothing(self, world, ada, bob, admin):
        choose(ada, on_wait=False)
        choose(bob, wait_minutes=240)
        for user in (ada, bob, admin):
            world.launch(user)
        world.now += timedelta(hours=2)
        notices_sweep(world.now)
        assert not Notice.objects.exists()

    def test_a_job_that_has_begun_meanwhile_is_not_said_to_wait(self, world, ada):
        choose(ada)
        self.launch_and_wait(world, ada, hours=2)
        notices_sweep(world.now)
        world.settle()
        send_all(world)
        assert mail.outbox == []
        assert Notice.objects.get().problem == "The job is no longer queued."


class TestWaking:
    def test_the_verdict_wakes_a_worker_once_it_is_committed(
        self, world, ada, sent, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks(execute=True):
            fail(world, world.launch(ada))
        assert (messages.DELIVER_EVENTS, ATTEMPT_DECIDED) in sent
        assert (messages.SEND_NOTICE, str(Notice.objects.get().pk)) in sent

    def test_the_task_that_is_woken_writes_the_notice(self, world, ada):
        job = fail_unread(world, world.launch(ada))
        assert not Notice.objects.exists()
        tasks.deliver_events(ATTEMPT_DECIDED)
        assert [one.job_id for one in Notice.objects.all()] == [job.pk]

    def test_a_verdict_whose_message_was_lost_is_read_by_the_sweep(self, world, ada):
        fail_unread(world, world.launch(ada))
        notices_sweep(world.now)
        assert Notice.objects.count() == 1

    def test_the_attempt_that_ended_is_told_of_also_when_another_has_begun(self, world, ada):
        job = fail_unread(world, world.launch(ada))
        jobs.job_retry(user=ada, job=job)
        verdicts_note()
        assert [one.attempt for one in Notice.objects.all()] == [1]

    def test_a_lost_message_is_sent_again_by_the_sweep(self, world, ada, sent, django_capture_on_commit_callbacks):
        fail(world, world.launch(ada))
        with django_capture_on_commit_callbacks(execute=True):
            notices_sweep(world.now)
        assert sent == [(messages.SEND_NOTICE, str(Notice.objects.get().pk))]

    def test_the_task_sends_the_mail(self, world, ada):
        fail(world, world.launch(ada))
        Notice.objects.update(due_at=Job.objects.get().created_at)
        tasks.send_notice(str(Notice.objects.get().pk))
        assert len(mail.outbox) == 1


class TestPage:
    def test_choices_are_kept(self, ada, client):
        client.force_login(ada)
        wish = {"way-job.succeeded": "mail", "way-job.failed": "none", "wait_minutes": "240"}
        client.post("/account/notifications/", wish | {"daily_hour": "8", "flood": "10"})
        ada.refresh_from_db()
        chosen = ada.mail_choices
        assert (chosen.on_success, chosen.on_failure, chosen.on_wait, chosen.with_log) == (True, False, False, False)
        assert chosen.wait_minutes == 240

    def test_it_says_when_no_mail_can_reach_anybody(self, ada, client, settings):
        client.force_login(ada)
        settings.YARDMASTER_SENDS_MAIL = False
        assert "YARDMASTER_EMAIL_URL" in client.get("/account/notifications/").content.decode()
        settings.YARDMASTER_SENDS_MAIL = True
        assert "YARDMASTER_EMAIL_URL" not in client.get("/account/notifications/").content.decode()
        ada.email = ""
        ada.save()
        assert "no e-mail address" in client.get("/account/notifications/").content.decode()

    @pytest.mark.parametrize("minutes", ["", "7", "-1", "x", "9" * 50])
    def test_a_wait_that_is_no_choice_is_refused(self, ada, client, minutes):
        client.force_login(ada)
        assert client.post("/account/notifications/", {"wait_minutes": minutes}).status_code == 422

    def test_mails_are_listed_with_their_jobs_and_hostile_names_harm_nothing(self, world, ada, client):
        job = fail(world, world.launch(ada))
        Job.objects.filter(pk=job.pk).update(name=HOSTILE)
        send_all(world)
        client.force_login(ada)
        page = client.get("/account/notifications/").content.decode()
        assert f"/jobs/{job.pk}/" in page
        assert "<script>alert" not in page
