"""What beat has done every so often beside the messages of `celery_worker.tasks`: each task calls a function that looks
at what is due. What is decided is decided there, and a run that is left out costs time alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from apps.accounting.budget_sweep import budgets_sweep
from apps.accounting.idle_hours import idle_hours_sweep
from apps.accounting.rollup import usage_sweep
from apps.accounts.attempts import networks_clean
from apps.accounts.browsers import browsers_clean
from apps.accounts.device import device_clean
from apps.administration.quota_schedules import quota_schedules_sweep
from apps.administration.quota_warnings import quota_warnings_sweep
from apps.audit.services import events_clean
from apps.jobs.worker.retention import retention_sweep
from apps.schedules.worker import schedules_sweep
from apps.serving.worker import services_sweep
from apps.stores import log_store, storage
from apps.sweeps.worker import sweeps_sweep
from apps.workbench.home_keeping import homes_sweep
from apps.workbench.worker import sessions_sweep

STORES_CLEANED_AFTER = timedelta(hours=24)
_sweeps_slot, _schedules_slot = threading.Lock(), threading.Lock()


@contextmanager
def _alone(slot: threading.Lock) -> Iterator[bool]:
    """Whether no other thread of this process is at it: then this one is, until the block ends."""
    is_mine = slot.acquire(blocking=False)
    try:
        yield is_mine
    finally:
        if is_mine:
            slot.release()


@shared_task(name="yardmaster.look_at_sweeps")  # type: ignore[untyped-decorator]
def look_at_sweeps() -> None:
    """Launch and stop trials of sweeps of jobs. A launch reads code for seconds: one thread of a process does so."""
    with _alone(_sweeps_slot) as is_mine:
        if is_mine:
            sweeps_sweep(timezone.now())


@shared_task(name="yardmaster.sweep_schedules")  # type: ignore[untyped-decorator]
def sweep_schedules() -> None:
    """Launch what schedules have planned for now; one thread of a process, as for sweeps."""
    with _alone(_schedules_slot) as is_mine:
        if is_mine:
            schedules_sweep(timezone.now())


@shared_task(name="yardmaster.sweep_services")  # type: ignore[untyped-decorator]
def sweep_services() -> None:
    """Stop services that no one uses."""
    services_sweep(timezone.now())


@shared_task(name="yardmaster.sweep_sessions")  # type: ignore[untyped-decorator]
def sweep_sessions() -> None:
    """Stop sessions of the workbench that no one uses, and start those that are to be restarted."""
    sessions_sweep(timezone.now())


@shared_task(name="yardmaster.sweep_homes")  # type: ignore[untyped-decorator]
def sweep_homes() -> None:
    """Wake the homes of Jupyters that are to be measured or removed."""
    homes_sweep(timezone.now())


@shared_task(name="yardmaster.sweep_quotas")  # type: ignore[untyped-decorator]
def sweep_quotas() -> None:
    """Put scheduled changes of quotas into force, and take back those that end."""
    quota_schedules_sweep(timezone.now())


@shared_task(name="yardmaster.sweep_usage")  # type: ignore[untyped-decorator]
def sweep_usage() -> None:
    """Sum the days that are closed, count what is idle, and see which budgets and quotas are reached or used up."""
    now = timezone.now()
    with ExitStack() as steps:  # each is done whatever becomes of the others; the last fault is raised
        for step in reversed((usage_sweep, idle_hours_sweep, budgets_sweep, quota_warnings_sweep)):
            steps.callback(step, now)


@shared_task(name="yardmaster.remove_old")  # type: ignore[untyped-decorator]
def remove_old() -> None:
    """Remove what ended jobs left, as the rules of retention say."""
    retention_sweep(timezone.now())


@shared_task(name="yardmaster.clean_stores")  # type: ignore[untyped-decorator]
def clean_stores() -> None:
    """Remove what calls that were interrupted left in the object store and the log store."""
    storage().clean_up(STORES_CLEANED_AFTER)
    log_store().forget_deleted(STORES_CLEANED_AFTER.total_seconds())


@shared_task(name="yardmaster.clean_browsers")  # type: ignore[untyped-decorator]
def clean_browsers() -> None:
    """Forget sessions that have expired, networks that are no longer signed in from, programs that asked
    to be signed in, and audit events that are old."""
    now = timezone.now()
    browsers_clean(now)
    networks_clean(now)
    device_clean(now)
    events_clean(now)
