"""Rules of retention at work: what a pass removes, what it leaves, and what people find in its place."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from apps.audit.models import AuditEvent
from apps.jobs.labels import job_pin, job_unpin
from apps.jobs.models import Checkpoint, Hold, Job, JobAttempt, JobCleared, JobEvent, JobOutput, RetentionRule
from apps.jobs.services import job_retry
from apps.jobs.state.log_charges import charged
from apps.jobs.worker import retention
from apps.jobs.worker.retention import retention_sweep
from apps.namespaces.models import Membership, Namespace
from apps.registry.models import Model, ModelVersion
from apps.stores import counted_log, log_store, storage
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from tests.integration.jobs.test_job_outputs import EVENTS, expire_addresses, send
from tests.integration.jobs.test_task_api import sent
from tests.integration.jobs.world import task_of
from yardmaster.errors import Unavailable
from yardmaster.ids import new_id
from yardmaster.job.spec import Role
from yardmaster.lifecycle.retention import Kind
from yardmaster.logs.keys import StreamKey

MONTH = timedelta(days=31)


def rule(kind: str, days: int | None = 30, namespace: Namespace | None = None, **more) -> RetentionRule:
    facts = {"reason": "space", "changed_at": timezone.now(), **more}
    return RetentionRule.objects.create(kind=kind, days=days, namespace=namespace, **facts)


def printed(job: Job, text: bytes = b"loss 0.3\n") -> None:
    stream = StreamKey(job.pk, job.attempt, Role.WORKER, 0)
    charged(stream, partial(counted_log().append, stream, 0, text, [(0, 1)]))


def ended(world, owner, *, files: bool = True, **changes) -> Job:
    """A job that has printed, and has written an output and a checkpoint."""
    job = world.launch(owner, **changes)
    world.until_running(job)
    job = world.again(job)
    printed(job)
    if files:
        send(task_of(job), {EVENTS: b"0123", "a.csv": b"csv"}, shared=True)
        sent(task_of(job), "checkpoints", step=5)
    world.engine.succeed(job)
    world.until_quiet()
    expire_addresses()
    return world.again(job)


def joins(user, job: Job) -> Membership:
    return Membership.objects.create(namespace=job.namespace, user=user, role="viewer")


def of_a_model(job: Job) -> ModelVersion:
    model, _ = Model.objects.get_or_create(namespace=job.namespace, name="digits")
    return ModelVersion.objects.create(
        id=new_id(), parent=model, number=model.versions.count() + 1, source_job=job.pk, attempt=1, upload_id=new_id(),
        key_prefix="x", size=1, file_count=1, added=1, changed=0, removed=0,
    )  # fmt: skip


def lines(job: Job) -> int:
    return sum(one.lines for one in log_store().streams(job.pk))


def test_without_a_rule_nothing_goes_however_old(world, ada):
    job = ended(world, ada)
    assert retention_sweep(world.now + timedelta(days=10_000)) == 0
    rule("logs", days=None)
    assert retention_sweep(world.now + timedelta(days=10_000)) == 0
    assert lines(job)
    assert JobOutput.objects.filter(job=job).count() == 2


def test_old_logs_go_their_storage_is_returned_and_the_audit_counts_them(world, ada, signed_in, client):
    job = ended(world, ada, files=False)
    rule("logs")
    charged_before = storage_used(job.namespace)
    assert charged_before.logs > 0
    assert retention_sweep(world.now + timedelta(days=29)) == 0
    assert retention_sweep(world.now + MONTH) == 1
    assert not log_store().streams(job.pk)
    assert (storage_used(job.namespace).used, storage_used(job.namespace).logs) == (0, 0)
    told = AuditEvent.objects.get(action="retention.remove")
    facts = {"kind": "logs", "jobs": 1, "bytes": charged_before.logs, "names": [job.name]}
    assert told.facts == {"rule": "kept for 30 days (rule of the portal)", **facts}
    assert retention_sweep(world.now + MONTH) == 0, "once"
    for address in ("", "lines/", "search/?q=x", "levels/", "raw/"):
        answer = signed_in(ada).get(f"/api/v1/jobs/{job.pk}/logs/{address}")
        assert (answer.status_code, answer.json()["code"]) == (410, "logs_expired"), address
    client.force_login(ada)
    for page in (f"/jobs/{job.pk}/", f"/jobs/{job.pk}/logs/"):
        html = client.get(page).content.decode()
        assert "The log was removed on 04 Feb 2027: logs are kept for 30 days (rule of the portal)." in html
    assert "Log removed" in client.get(f"/jobs/{job.pk}/").content.decode()


def test_old_files_go_with_their_checkpoints_and_a_retry_starts_from_the_beginning(
    world, ada, signed_in, client, django_capture_on_commit_callbacks
):
    job = ended(world, ada)
    keys = [one.segments[0]["key"] for one in JobOutput.objects.filter(job=job)]
    before = storage_used(job.namespace)
    rule("files")
    with django_capture_on_commit_callbacks(execute=True):
        assert retention_sweep(world.now + MONTH) == 1
    assert not any(list(storage().list_prefix(key)) for key in keys)
    assert storage_used(job.namespace).used == before.logs
    assert not Checkpoint.objects.filter(job=job).exists()
    assert AuditEvent.objects.get(action="retention.remove").facts["bytes"] == before.used - before.logs
    me = signed_in(ada)
    for address in ("", "content/?path=a.csv", "archive/"):
        answer = me.get(f"/api/v1/jobs/{job.pk}/outputs/{address}")
        assert (answer.status_code, answer.json()["code"]) == (410, "files_expired"), address
    client.force_login(ada)
    for page in (f"/jobs/{job.pk}/", f"/jobs/{job.pk}/outputs/"):
        assert "The files were removed on" in client.get(page).content.decode()
    assert lines(job), "the log is another kind"
    again = job_retry(user=ada, job=job, resumes=True)
    assert me.get(f"/api/v1/jobs/{job.pk}/outputs/").json()["results"] == [], "the new attempt's"
    assert me.get(f"/api/v1/jobs/{job.pk}/outputs/?attempt=1").status_code == 410
    assert again.attempt == 2


def test_the_log_of_a_later_attempt_is_kept_by_its_own_end(world, ada):
    job = ended(world, ada, files=False)
    rule("logs")
    retention_sweep(world.now + MONTH)
    world.now += MONTH
    again = job_retry(user=ada, job=job)
    Job.objects.filter(pk=job.pk).update(queued_at=world.now, next_look_at=world.now)
    world.until_running(again)
    printed(world.again(again))
    assert retention_sweep(world.now + MONTH) == 0, "it runs"
    world.engine.succeed(world.again(again))
    world.until_quiet()
    assert {one.key.attempt for one in log_store().streams(job.pk)} == {2}
    assert retention_sweep(world.now + timedelta(days=29)) == 0
    assert retention_sweep(world.now + MONTH) == 1
    assert not log_store().streams(job.pk)
    assert JobCleared.objects.get(job=job).logs_attempt == 2


def test_a_whole_job_goes_as_one_that_is_deleted_by_hand(world, ada, signed_in, django_capture_on_commit_callbacks):
    job = ended(world, ada)
    rule("jobs")
    with django_capture_on_commit_callbacks(execute=True):
        assert retention_sweep(world.now + MONTH) == 1
    assert signed_in(ada).get(f"/api/v1/jobs/{job.pk}/").status_code == 404
    world.now = max(world.now, world.again(job).next_look_at)
    with django_capture_on_commit_callbacks(execute=True):
        world.settle()
    assert not Job.objects.filter(pk=job.pk).exists()
    assert storage_used(job.namespace).used == 0
    actions = set(AuditEvent.objects.filter(actor_id=None).values_list("action", flat=True))
    assert {"retention.remove", "job.delete"} <= actions


def test_pinned_held_and_used_jobs_stay_and_so_does_the_origin_of_a_model(world, ada, bob):
    jobs = [ended(world, ada, files=False, name=name) for name in ("pinned", "held", "watched", "model", "plain")]
    pinned, held, watched, made, _ = jobs
    job_pin(user=ada, job=pinned)
    Hold.objects.create(job=held, at=timezone.now())
    Job.objects.filter(pk=watched.pk).update(watched_until=world.now + 2 * MONTH)
    of_a_model(made)
    rule("jobs")
    assert retention_sweep(world.now + MONTH) == 1
    gone = set(Job.objects.filter(deleted_at__isnull=False).values_list("name", flat=True))
    assert gone == {"plain"}
    job_unpin(user=ada, job=pinned)
    assert retention_sweep(world.now + MONTH) == 1
    assert Job.objects.get(pk=pinned.pk).deleted_at is not None


def test_the_pin_of_a_user_who_was_locked_out_spares_nothing(world, ada, bob):
    job = ended(world, ada, files=False)
    joins(bob, job)
    job_pin(user=bob, job=job)
    rule("logs")
    assert retention_sweep(world.now + MONTH) == 0
    bob.is_active = False
    bob.save()
    assert retention_sweep(world.now + MONTH) == 1


def test_a_namespace_may_keep_longer_or_shorter_than_the_portal_and_an_archive_stays(world, ada, bob):
    mine, other = ended(world, ada, files=False), ended(world, bob, files=False)
    rule("logs", 30)
    rule("logs", None, namespace=mine.namespace)
    assert retention_sweep(world.now + MONTH) == 1
    assert lines(mine)
    assert not lines(other)
    RetentionRule.objects.filter(namespace=mine.namespace).update(days=7)
    assert retention_sweep(world.now + timedelta(days=8)) == 1
    assert "rule of the namespace" in JobCleared.objects.get(job=mine).logs_rule
    RetentionRule.objects.filter(namespace__isnull=False).delete()
    RetentionRule.objects.create(kind="jobs", days=1, reason="x", changed_at=timezone.now())
    Namespace.objects.filter(pk=mine.namespace_id).update(closed_at=timezone.now())
    retention_sweep(world.now + MONTH)
    assert world.again(mine).deleted_at is None, "a closed namespace is an archive"


def test_the_newest_jobs_of_a_namespace_stay(world, ada):
    jobs = []
    for number in range(3):
        jobs.append(ended(world, ada, files=False, name=f"job {number}"))
        world.now += timedelta(hours=1)
    rule("logs", newest=2)
    assert retention_sweep(world.now + MONTH) == 1
    assert [bool(lines(job)) for job in jobs] == [False, True, True]


def test_a_pass_that_breaks_off_after_its_decision_is_continued_and_counts_once(world, ada, monkeypatch):
    job = ended(world, ada)
    rule("logs")
    rule("files")

    def away(*_: object) -> None:
        raise Unavailable("The disk does not answer.")

    with monkeypatch.context() as broken:
        broken.setattr(retention, "attempts_delete", away)
        broken.setattr(retention, "uploads_discard_files", away)
        assert retention_sweep(world.now + MONTH) == 2
    assert storage_used(job.namespace).logs > 0, "its bytes are there still"
    row = JobCleared.objects.get(job=job)
    assert (row.logs_done_at, row.files_done_at) == (None, None)
    assert retention_sweep(world.now + MONTH) == 0
    assert storage_used(job.namespace).used == 0
    assert AuditEvent.objects.filter(action="retention.remove").count() == 2
    assert JobEvent.objects.filter(job=job, kind__endswith="_removed").count() == 2
    assert not Upload.objects.filter(job_id=job.pk, state="complete").exists()


def test_a_pass_takes_so_many_at_once_and_the_next_the_others(world, ada, monkeypatch):
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    for number in range(3):
        ended(world, ada, files=False, name=f"job {number}")
    rule("logs")
    assert [retention_sweep(world.now + MONTH) for _ in range(3)] == [2, 1, 0]
    assert sum(one.facts["jobs"] for one in AuditEvent.objects.filter(action="retention.remove")) == 3
    assert JobAttempt.objects.filter(log_bytes__gt=0).count() == 0


@pytest.mark.parametrize("kind", list(Kind))
def test_a_pass_asks_few_statements_however_many_jobs_are_spared(world, ada, kind, django_assert_max_num_queries):
    for number in range(4):
        job_pin(user=ada, job=ended(world, ada, files=False, name=f"job {number}"))
    rule(kind.value)
    with django_assert_max_num_queries(10):
        assert retention_sweep(world.now + MONTH) == 0


def test_the_page_of_a_job_says_until_when_it_keeps_what_and_that_a_pin_keeps_it(
    world, ada, bob, client, django_assert_max_num_queries
):
    job = ended(world, ada)
    client.force_login(ada)
    part = f"/jobs/{job.pk}/kept/"
    assert part in client.get(f"/jobs/{job.pk}/").content.decode()
    assert "Kept" not in client.get(part).content.decode(), "no rule, nothing to say"
    for kind in Kind:
        rule(kind.value, days=3_000, newest=0 if kind is Kind.LOGS else 5)
    until = Job.objects.get(pk=job.pk).decided_at + timedelta(days=3_000)
    with django_assert_max_num_queries(12):
        page = client.get(part).content.decode()
    assert page.count(f"{until:%b %Y}</time>") == 1
    assert page.count("Kept while the job is among the newest of the namespace") == 2
    assert "Pin the job" in page
    with django_assert_max_num_queries(12):
        client.get(f"/jobs/{job.pk}/")
    job_pin(user=ada, job=job)
    page = client.get(part).content.decode()
    assert page.count("Kept while it is pinned") == 3
    assert "Pin the job" not in page
    client.force_login(bob)
    assert client.get(part).status_code == 404
