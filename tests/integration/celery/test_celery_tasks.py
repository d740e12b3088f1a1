"""The Celery side: messages carry ids, tasks call one function, and beat names tasks that there are."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable

import pytest
from django.utils import timezone

from apps.dispatch import messages
from apps.jobs.models import Job, QueuePass
from apps.jobs.state.queue import AGAIN_AFTER as QUEUE_AGAIN_AFTER
from apps.jobs.worker.sweep import AGAIN_AFTER, sweep
from celery_worker import tasks
from celery_worker.app import SCHEDULE, app
from tests.integration.jobs.conftest import engine_settings, sent, stores, world

__all__ = ["engine_settings", "sent", "stores", "world"]


def test_every_task_on_the_schedule_exists():
    app.loader.import_default_modules()
    assert {entry["task"] for entry in SCHEDULE.values()} <= app.tasks.keys()


def test_a_message_lost_with_its_worker_is_given_to_another():
    assert app.conf.task_acks_late
    assert app.conf.task_reject_on_worker_lost
    assert app.conf.task_ignore_result


def test_launches_have_their_queue_decided_once_they_are_committed(
    world, ada, sent, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        jobs = [world.launch(ada) for _ in range(3)]
        assert sent == []
    assert sent == [(messages.ADMIT, "staged")], "one pass decides all of them"
    with django_capture_on_commit_callbacks(execute=True):
        tasks.decide_queue("staged")
    assert sorted(sent[1:]) == sorted((messages.RECONCILE, str(job.pk)) for job in jobs)


def test_the_tasks_bring_the_job_forward(world, ada):
    job = world.launch(ada)
    tasks.decide_queue("staged")
    tasks.reconcile_job(str(job.pk))
    assert Job.objects.get(pk=job.pk).phase == "RUNNING"


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("upload_finish_quietly", tasks.finish_upload),
        ("upload_remove", tasks.remove_upload),
        ("code_import", tasks.fetch_code),
    ],
)
def test_large_uploads_leave_threads_to_jobs(monkeypatch, name, task):
    """Four uploads of terabytes must not keep a worker of four threads from looking at jobs for hours."""
    begun: list[uuid.UUID] = []
    goes_on = threading.Event()

    def slow(upload_id: uuid.UUID) -> None:
        begun.append(upload_id)
        assert goes_on.wait(20)

    monkeypatch.setattr(tasks, name, slow)
    monkeypatch.setattr(tasks, "code_import_next", lambda now: None)
    monkeypatch.setattr(tasks, "import_in_turn", lambda now: None)
    threads = [threading.Thread(target=task, args=[str(uuid.uuid4())]) for _ in range(4)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 10
    while sum(thread.is_alive() for thread in threads) > tasks.UPLOADS_AT_ONCE or len(begun) < tasks.UPLOADS_AT_ONCE:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    waiting = [thread for thread in threads if thread.is_alive()]
    assert (len(begun), len(waiting)) == (tasks.UPLOADS_AT_ONCE, tasks.UPLOADS_AT_ONCE)
    goes_on.set()
    for thread in threads:
        thread.join()
    task(str(uuid.uuid4()))
    assert len(begun) == tasks.UPLOADS_AT_ONCE + 1


def slow_work(name: str, begun: list[str], goes_on: threading.Event) -> Callable[[uuid.UUID], None]:
    """Work that has begun, and ends when it may."""

    def work(_: uuid.UUID) -> None:
        begun.append(name)
        assert goes_on.wait(20)

    return work


def test_publishing_scans_and_reading_models_leave_a_thread_to_jobs(monkeypatch):
    begun: list[str] = []
    woken: list[tuple[str, uuid.UUID]] = []
    goes_on = threading.Event()

    for name in ("publish", "bucket_scan", "contents_read", "upload_finish_quietly", "upload_remove"):
        monkeypatch.setattr(tasks, name, slow_work(name, begun, goes_on))
    monkeypatch.setattr(tasks, "scan_in_turn", lambda now: None)
    monkeypatch.setattr(tasks, "enqueue_now", lambda message, subject: woken.append((message, subject)))
    scanned = uuid.uuid4()
    works = [tasks.publish_dataset] * 3 + [tasks.finish_upload, tasks.remove_upload, tasks.read_model]
    threads = [threading.Thread(target=one, args=[str(uuid.uuid4())], daemon=True) for one in works]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 10
    while len(begun) < 3 or sum(thread.is_alive() for thread in threads) > 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    tasks.scan_bucket(str(scanned))
    assert (len(begun), begun.count("contents_read"), woken) == (3, 1, [])
    goes_on.set()
    for thread in threads:
        thread.join()
    assert woken == [(messages.SCAN_BUCKET, scanned)], "who found no place is woken by who leaves"
    tasks.scan_bucket(str(scanned))
    assert begun[-1] == "bucket_scan"


def test_an_upload_may_be_read_for_hours_and_a_job_is_looked_at_for_seconds():
    assert app.tasks[messages.FINISH_UPLOAD].time_limit >= 10 * 3600
    assert app.tasks[messages.RECONCILE].time_limit == app.conf.task_time_limit
    assert app.conf.task_time_limit <= 120


def test_the_sweep_wakes_who_is_due_and_not_again_at_once(world, ada, sent):
    due, later = world.launch(ada), world.launch(ada)
    now = timezone.now()
    QueuePass.objects.create(engine="staged", next_at=now + AGAIN_AFTER * 5)
    Job.objects.filter(pk=due.pk).update(next_look_at=now)
    Job.objects.filter(pk=later.pk).update(next_look_at=now + AGAIN_AFTER * 5)
    assert sweep(now) == 1
    assert sent == [(messages.RECONCILE, str(due.pk))]
    assert sweep(now) == 0
    assert sweep(now + AGAIN_AFTER) == 1


def test_the_sweep_has_the_queues_decided_that_are_due_and_not_again_at_once(world, ada, sent):
    world.launch(ada)
    now = timezone.now()
    Job.objects.update(next_look_at=None)
    for at, passes in ((now, 1), (now, 1), (now + QUEUE_AGAIN_AFTER, 2)):
        sweep(at)
        assert sent == [(messages.ADMIT, "staged")] * passes


def test_an_ended_job_is_never_swept_again(world, ada, sent):
    job = world.launch(ada)
    world.settle()
    world.engine.succeed(job)
    world.until_quiet()
    assert sweep(world.now.replace(year=2099)) == 0


@pytest.mark.parametrize("kind", ["refused", "silent"])
def test_a_broker_that_is_away_costs_less_than_a_second_and_never_the_request(kind, settings, caplog, monkeypatch):
    assert messages.TIMEOUT < 1
    monkeypatch.setattr(messages, "TIMEOUT", 1.0)  # more than a busy machine needs for what follows
    monkeypatch.setattr(messages, "PAUSE", 60.0)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if kind == "silent":
            listener.listen()  # takes the connection and says nothing
        settings.CELERY_BROKER_URL = f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
        messages._celery.cache_clear()
        messages._paused_until = 0.0
        try:
            messages._celery().connection_for_write().transport  # noqa: B018 - imports what a web process has imported
            before = time.monotonic()
            for _ in range(20):
                messages.enqueue_now(messages.RECONCILE, uuid.uuid4())
            assert time.monotonic() - before < 10, "one attempt, not twenty of a second each"
        finally:
            messages._celery.cache_clear()
            messages._paused_until = 0.0
    assert caplog.text.count("took no message") == 1


def test_a_job_launched_without_a_broker_is_found_by_the_sweep(
    world, ada, settings, django_capture_on_commit_callbacks
):
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    messages._celery.cache_clear()
    try:
        with django_capture_on_commit_callbacks(execute=True):
            job = world.launch(ada)
    finally:
        messages._celery.cache_clear()
        messages._paused_until = 0.0
    world.settle()
    assert world.again(job).phase == "RUNNING"


def test_copies_from_clusters_leave_a_slot_to_uploads(monkeypatch):
    """A server of Ignite that answers slowly holds a copy for an hour; a namespace may have four of them."""
    begun: list[str] = []
    goes_on = threading.Event()

    monkeypatch.setattr(tasks, "copy_next", slow_work("copy", begun, goes_on))
    monkeypatch.setattr(tasks, "upload_finish_quietly", slow_work("upload", begun, goes_on))
    for task in (tasks.copy_connection, tasks.copy_connection, tasks.copy_connection, tasks.finish_upload):
        threading.Thread(target=task, args=[str(uuid.uuid4())], daemon=True).start()
        time.sleep(0.05)
    deadline = time.monotonic() + 10
    while len(begun) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    goes_on.set()
    assert begun == ["copy", "upload"]
