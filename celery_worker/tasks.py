"""What the workers run. Each task calls one function; what is decided is decided there. No task sleeps or loops."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable

from celery import shared_task
from celery.signals import worker_ready
from django.db import connection
from django.utils import timezone

from apps.api.idempotency import idempotency_clean
from apps.code.import_turns import import_in_turn
from apps.code.worker import code_import, code_import_next, code_imports_sweep
from apps.connections.worker import connection_check, connection_in_turn, connections_sweep
from apps.datasets.connection_copying import copies_sweep, copy_next
from apps.datasets.making import made_run, made_sweep
from apps.datasets.scan_turns import scan_in_turn
from apps.datasets.scanning import bucket_scan, buckets_sweep
from apps.dispatch.messages import (
    ADMIT,
    CARRY_OUT_REMOVAL,
    CHECK_CONNECTION,
    CHECK_SPARK,
    COPY_CONNECTION,
    DELIVER_EVENTS,
    DELIVER_WEBHOOK,
    FETCH_CODE,
    FINISH_UPLOAD,
    KEEP_HOME,
    KEEP_NAMESPACE,
    MAKE_DATASET,
    PUBLISH,
    READ_MODEL,
    RECONCILE,
    REMOVE_UPLOAD,
    SCAN_BUCKET,
    SEND_ANNOUNCEMENT,
    SEND_NOTICE,
    enqueue_now,
)
from apps.dispatch.outbox import ATTEMPT_DECIDED, BUDGET_REACHED, MANAGER_LEFT
from apps.environments.services import archive_settle, environments_sweep
from apps.jobs.engines.namespaces import engine_namespaces_keep, engine_namespaces_sweep
from apps.jobs.engines.probes import network_is_due, probes_sweep
from apps.jobs.engines.snapshots import engines_look
from apps.jobs.engines.volumes import volumes_keep, volumes_sweep
from apps.jobs.shells import shells_sweep
from apps.jobs.state.exports import export_settle, exports_settle
from apps.jobs.state.outputs import outputs_settle, outputs_sweep
from apps.jobs.state.publications import part_settle
from apps.jobs.state.results import result_settle, results_settle
from apps.jobs.worker.estimating import waits_estimate
from apps.jobs.worker.publishing import publications_sweep, publish
from apps.jobs.worker.queue_pass import admit_queue
from apps.jobs.worker.reconcile import reconcile
from apps.jobs.worker.sweep import sweep
from apps.namespaces.membership_events import MEMBERSHIP_CHANGED
from apps.notifications.announcements import webhooks_off_note
from apps.notifications.broadcasts import broadcast_mail
from apps.notifications.budgets import budgets_note
from apps.notifications.former_managers import former_managers_note
from apps.notifications.happenings import happenings_note
from apps.notifications.memberships import memberships_note
from apps.notifications.schedules import schedules_paused_note
from apps.notifications.services import verdicts_note
from apps.notifications.worker import announcement_send, notice_send, notices_sweep
from apps.registry.contents import contents_read, contents_sweep
from apps.registry.deletion import deleted_sweep
from apps.removals.worker import removal_carry_out, removals_sweep
from apps.schedules.services import SCHEDULE_PAUSED
from apps.spark.worker import spark_check, spark_checks_sweep
from apps.uploads.finishing import upload_finish_quietly
from apps.uploads.removal import upload_remove
from apps.uploads.services import uploads_sweep
from apps.webhooks.services import WEBHOOK_OFF
from apps.webhooks.waiting import waiting_note
from apps.webhooks.worker import webhook_deliver, webhooks_sweep
from apps.workbench.home_keeping import home_keep
from celery_worker.looks import Looks

UPLOADS_AT_ONCE = 2
"""In one process: its other threads are left to jobs, which wait for no one's terabytes."""
COPIES_AT_ONCE = 1
"""Of those: a copy waits for a server of others for up to an hour, and uploads do not wait for it."""
FETCHES_AT_ONCE = 2
CHECKS_AT_ONCE = 1
"""A look at a cluster waits for a server of others for up to a minute."""
DELIVERIES_AT_ONCE = 2
"""An attempt waits for a receiver for seconds, and jobs do not wait for it."""
UPLOAD_TIME_LIMIT = 86_400
"""Seconds. The largest file is read at the disk's speed for hours; cut off, it would begin again, for ever."""

READERS = {
    ATTEMPT_DECIDED: verdicts_note,
    BUDGET_REACHED: budgets_note,
    MANAGER_LEFT: former_managers_note,
    MEMBERSHIP_CHANGED: memberships_note,
    SCHEDULE_PAUSED: schedules_paused_note,
    WEBHOOK_OFF: webhooks_off_note,
}
"""Who reads the events of a topic."""

_upload_slots = threading.BoundedSemaphore(UPLOADS_AT_ONCE)
_copy_slots = threading.BoundedSemaphore(COPIES_AT_ONCE)
_fetch_slots = threading.BoundedSemaphore(FETCHES_AT_ONCE)
_check_slots = threading.BoundedSemaphore(CHECKS_AT_ONCE)
_delivery_slots = threading.BoundedSemaphore(DELIVERIES_AT_ONCE)
_looks = Looks(READ_MODEL, SCAN_BUCKET, lambda message, subject: enqueue_now(message, subject))

log = logging.getLogger(__name__)


@shared_task(name=RECONCILE)  # type: ignore[untyped-decorator]
def reconcile_job(job_id: str) -> None:
    """Bring one job forward."""
    reconcile(uuid.UUID(job_id))


@shared_task(name=ADMIT)  # type: ignore[untyped-decorator]
def decide_queue(engine: str) -> None:
    """Start what may start of an engine's queue, and estimate when the others will."""
    admit_queue(engine)
    waits_estimate(engine)


@shared_task(name="yardmaster.sweep")  # type: ignore[untyped-decorator]
def sweep_jobs() -> None:
    """Wake every job that is due, and have every queue decided that is; end terminals that were lost."""
    sweep(timezone.now())
    shells_sweep(timezone.now())


@shared_task(name=FINISH_UPLOAD, time_limit=UPLOAD_TIME_LIMIT)  # type: ignore[untyped-decorator]
def finish_upload(upload_id: str) -> None:
    """Put one upload together, and make of it what it is for. With enough of them under way, the sweep asks again."""
    _in_upload_slot(_finish, upload_id)


def _finish(upload_id: uuid.UUID) -> None:
    if upload_finish_quietly(upload_id):
        for settle in (result_settle, export_settle, outputs_settle, part_settle, archive_settle):
            settle(upload_id, timezone.now())


def _in_upload_slot(work: Callable[[uuid.UUID], object], subject: str) -> None:
    """Do it, unless all slots of uploads are taken."""
    if not _upload_slots.acquire(blocking=False):
        return
    try:
        work(uuid.UUID(subject))
    finally:
        _upload_slots.release()


@shared_task(name=FETCH_CODE, time_limit=UPLOAD_TIME_LIMIT)  # type: ignore[untyped-decorator]
def fetch_code(import_id: str) -> None:
    """Fetch code from Git: this import, or one whose namespace has fewer under way. With enough of that under way, the
    one that ends next wakes the one whose turn it is."""
    if not _fetch_slots.acquire(blocking=False):
        return
    try:
        code_import(import_in_turn(timezone.now()) or uuid.UUID(import_id))
    finally:
        _fetch_slots.release()
        code_import_next(timezone.now())


@shared_task(name=CHECK_CONNECTION)  # type: ignore[untyped-decorator]
def check_connection(connection_id: str) -> None:
    """Look at the cluster of a data connection: of this one, or of one whose namespace has fewer looks under way. The
    one that ends wakes the next."""
    if not _check_slots.acquire(blocking=False):
        return
    try:
        connection_check(connection_in_turn(timezone.now()) or uuid.UUID(connection_id))
    finally:
        _check_slots.release()
        if (waits := connection_in_turn(timezone.now())) is not None:
            enqueue_now(CHECK_CONNECTION, waits)


@shared_task(name=CHECK_SPARK)  # type: ignore[untyped-decorator]
def check_spark(cluster_id: str) -> None:
    """Look whether the master of a Spark cluster answers."""
    spark_check(uuid.UUID(cluster_id))


@shared_task(name=REMOVE_UPLOAD, time_limit=UPLOAD_TIME_LIMIT)  # type: ignore[untyped-decorator]
def remove_upload(upload_id: str) -> None:
    """Remove the bytes of an upload of many files, in the slots of uploads; with all of them taken, the sweep asks
    again."""
    _in_upload_slot(upload_remove, upload_id)


@shared_task(name=PUBLISH, time_limit=UPLOAD_TIME_LIMIT)  # type: ignore[untyped-decorator]
def publish_dataset(job_id: str) -> None:
    """Make a dataset version of what the tasks of a job have sent, or discard it. Copies as uploads do, in their slots;
    with all of them taken, the sweep asks again."""
    _in_upload_slot(publish, job_id)


@shared_task(name=MAKE_DATASET, time_limit=UPLOAD_TIME_LIMIT)  # type: ignore[untyped-decorator]
def make_dataset(made_id: str) -> None:
    """Fetch the files of a dataset that the portal knows, in the slots of uploads; with all of them taken, the sweep
    asks again."""
    _in_upload_slot(made_run, made_id)


@shared_task(name=COPY_CONNECTION, time_limit=UPLOAD_TIME_LIMIT)  # type: ignore[untyped-decorator]
def copy_connection(copy_id: str) -> None:
    """Copy rows of a cluster into a dataset, in a slot of uploads; with it taken, the sweep asks again."""
    if not _copy_slots.acquire(blocking=False):
        return
    try:
        _in_upload_slot(copy_next, copy_id)
    finally:
        _copy_slots.release()


@shared_task(name=READ_MODEL)  # type: ignore[untyped-decorator]
def read_model(version_id: str) -> None:
    """Read what a version of a model says of itself."""

    def look(subject: uuid.UUID) -> uuid.UUID:
        contents_read(subject)
        return subject

    _looks.one(READ_MODEL, uuid.UUID(version_id), look)


@shared_task(name=SCAN_BUCKET)  # type: ignore[untyped-decorator]
def scan_bucket(bucket_id: str) -> None:
    """List some more of a bucket that is a dataset: of this one, or of one whose namespace has waited longer."""

    def look(subject: uuid.UUID) -> uuid.UUID:
        in_turn = scan_in_turn(timezone.now()) or subject
        bucket_scan(in_turn)
        return in_turn

    _looks.one(SCAN_BUCKET, uuid.UUID(bucket_id), look)


@shared_task(name="yardmaster.sweep_models")  # type: ignore[untyped-decorator]
def sweep_models() -> None:
    """Read models whose message was lost, and remove deleted ones whose grace period is over."""
    contents_sweep()
    deleted_sweep(timezone.now())


@shared_task(name="yardmaster.sweep_uploads")  # type: ignore[untyped-decorator]
def sweep_uploads() -> None:
    """Heal uploads, environments, imports of code, scans of buckets, looks at clusters, copies of their rows and
    datasets being made that were interrupted, and expire what is idle."""
    uploads_sweep(timezone.now())
    buckets_sweep(timezone.now())
    made_sweep(timezone.now())
    copies_sweep(timezone.now())
    environments_sweep(timezone.now())
    code_imports_sweep(timezone.now())
    connections_sweep(timezone.now())
    spark_checks_sweep(timezone.now())


@shared_task(name=KEEP_NAMESPACE)  # type: ignore[untyped-decorator]
def keep_namespace(namespace_id: str) -> None:
    """Look after what engines keep for one namespace."""
    engine_namespaces_keep(uuid.UUID(namespace_id))
    volumes_keep(uuid.UUID(namespace_id))


@shared_task(name=CARRY_OUT_REMOVAL)  # type: ignore[untyped-decorator]
def carry_out_removal(removal_id: str) -> None:
    """Continue with one removal."""
    removal_carry_out(uuid.UUID(removal_id))


@shared_task(name="yardmaster.sweep_namespaces")  # type: ignore[untyped-decorator]
def sweep_namespaces() -> None:
    """Wake every namespace and every removal that is due."""
    now = timezone.now()
    engine_namespaces_sweep(now)
    volumes_sweep(now)
    removals_sweep(now)


@shared_task(name="yardmaster.probe_engines")  # type: ignore[untyped-decorator]
def probe_engines() -> None:
    """Try what no setting tells of engines, where that is due."""
    probes_sweep()


@shared_task(name="yardmaster.look_at_engines")  # type: ignore[untyped-decorator]
def look_at_engines() -> None:
    """Keep what the engines say of themselves, where that is due."""
    engines_look()


@worker_ready.connect(weak=False)  # type: ignore[untyped-decorator]
def network_is_due_again(**_: object) -> None:
    """With every start of a worker. In the main thread, which asks the database nothing else."""
    network_is_due()
    connection.close()


@shared_task(name="yardmaster.settle_results")  # type: ignore[untyped-decorator]
def settle_results() -> None:
    """Make checkpoints, models and outputs of finished uploads whose own message was lost, and remove replaced
    outputs; and have what is decided published."""
    for settle in (publications_sweep, results_settle, exports_settle, outputs_sweep):
        try:
            settle(timezone.now())
        except Exception:
            log.exception("%s stopped", settle.__name__)


@shared_task(name="yardmaster.clean_idempotency")  # type: ignore[untyped-decorator]
def clean_idempotency() -> None:
    """Forget the answers that no longer need to be replayed."""
    idempotency_clean(timezone.now())


@shared_task(name=DELIVER_EVENTS)  # type: ignore[untyped-decorator]
def deliver_events(topic: str) -> None:
    """Give events of one topic to the app that reads them."""
    READERS[topic]()


@shared_task(name=SEND_NOTICE)  # type: ignore[untyped-decorator]
def send_notice(notice_id: str) -> None:
    """Send one mail about a job."""
    notice_send(uuid.UUID(notice_id))


@shared_task(name=SEND_ANNOUNCEMENT)  # type: ignore[untyped-decorator]
def send_announcement(announcement_id: str) -> None:
    """Send one mail about what the portal has done by itself."""
    announcement_send(uuid.UUID(announcement_id))


@shared_task(name="yardmaster.sweep_notices")  # type: ignore[untyped-decorator]
def sweep_notices() -> None:
    """Have mails sent whose message was lost or whose server was away, and of jobs that wait for long."""
    notices_sweep(timezone.now())
    budgets_note()
    schedules_paused_note()
    memberships_note()
    broadcast_mail(timezone.now())
    former_managers_note()


@shared_task(name=DELIVER_WEBHOOK)  # type: ignore[untyped-decorator]
def deliver_webhook(webhook_id: str) -> None:
    """Send one message to a receiver. With enough of that under way, the sweep asks again."""
    if not _delivery_slots.acquire(blocking=False):
        return
    try:
        webhook_deliver(uuid.UUID(webhook_id))
    finally:
        _delivery_slots.release()


@shared_task(name="yardmaster.note_happenings")  # type: ignore[untyped-decorator]
def note_happenings() -> None:
    """Write what is to be sent of what has happened."""
    happenings_note()


@shared_task(name="yardmaster.sweep_webhooks")  # type: ignore[untyped-decorator]
def sweep_webhooks() -> None:
    """Have messages sent whose own message was lost or whose receiver was away, and of jobs that wait for long."""
    waiting_note(timezone.now())
    webhooks_sweep(timezone.now())


@shared_task(name=KEEP_HOME)  # type: ignore[untyped-decorator]
def keep_home(home_id: str) -> None:
    """Measure or remove the home of a Jupyter."""
    home_keep(uuid.UUID(home_id))
