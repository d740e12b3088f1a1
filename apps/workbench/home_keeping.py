"""Homes of Jupyters over time: measured while they are used, and removed by asking the engine until they are gone. A
worker does both; a change marks the row as due and wakes one, and the sweep finds what a lost message left."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.dispatch.leases import claim_due, due
from apps.dispatch.messages import KEEP_HOME, enqueue, enqueue_now
from apps.hosting.services import runs
from apps.jobs.engines.configured import engine_named
from apps.jobs.engines.namespaces import keeping_engines
from apps.jobs.selectors import UNFINISHED
from apps.jobs.services import job_stop_unused
from apps.uploads.storage_ledger import found_change
from apps.workbench.homes import home_forget, home_make, homes_in, reserved_by
from apps.workbench.models import Home, Kind, WorkbenchSession
from yardmaster.backoff import delay
from yardmaster.engines.base import KeepsHomes
from yardmaster.errors import Misconfigured, YardmasterError

log = logging.getLogger(__name__)

LOOK_EVERY = timedelta(minutes=3)
LEASE = timedelta(minutes=1)
"""Longer than a look takes."""
SHORTEST, LONGEST = timedelta(seconds=2), timedelta(minutes=2)
AT_ONCE = 200
Clock = Callable[[], datetime]


# --- removing --------------------------------------------------------------------------------------------------------


def homes_give_up(homes: QuerySet[Home]) -> int:
    """Want these gone, in the running transaction. Returns how many were not to go before."""
    found = list(homes.filter(goes=False).values_list("pk", flat=True))
    homes.filter(pk__in=found).update(goes=True, next_look_at=timezone.now(), setbacks=0, message="")
    for home_id in found:
        enqueue(KEEP_HOME, home_id)
    return len(found)


def homes_give_up_of(namespace_id: uuid.UUID, user_id: uuid.UUID | None, *, keep: bool) -> None:
    """Want those gone that go with this namespace, and with the user in every other; the user's Jupyters are stopped.
    `keep`: those of a team stay, but for engines that have removed the whole namespace."""
    if user_id is not None:
        for session in WorkbenchSession.objects.filter(kind=Kind.JUPYTER, owner=user_id).select_related("job"):
            if session.job is not None and runs(session.job):
                job_stop_unused(session.job, "Stopped: its user is being removed.")
    go = Home.objects.filter(Q(namespace=namespace_id) | Q(owner=user_id)) if user_id else homes_in(namespace_id)
    if keep and user_id is None:
        go = go.filter(engine__in=keeping_engines())
    homes_give_up(go)


def homes_left(namespace_id: uuid.UUID, user_id: uuid.UUID | None) -> list[tuple[str, str]]:
    """Which of them are still to go, and why: words for people."""
    theirs = Q(namespace=namespace_id) | Q(owner=user_id) if user_id else Q(namespace=namespace_id)
    return [
        (f"files of {one.owner.username}'s Jupyter on {one.engine}", one.message or "They are being deleted.")
        for one in Home.objects.filter(theirs, goes=True).select_related("owner").order_by("pk")[:AT_ONCE]
    ]


# --- looking ---------------------------------------------------------------------------------------------------------


def homes_sweep(now: datetime) -> int:
    """Wake the homes that are due, and those of sessions that run again. Sessions that run without one, from before an
    upgrade or of two starts at once, get theirs. Returns how many were woken."""
    here = WorkbenchSession.objects.filter(
        kind=Kind.JUPYTER, job__phase__in=UNFINISHED, namespace=OuterRef("namespace"), owner=OuterRef("owner"),
        job__engine=OuterRef("engine"),
    )  # fmt: skip
    Home.objects.filter(Exists(here), is_measured=True, next_look_at__isnull=True).update(next_look_at=now)
    for session in _without_home().select_related("job", "namespace", "owner")[:AT_ONCE]:
        engine_name = session.job.engine if session.job is not None else ""
        size = reserved_by(engine_name)
        if size is not None:
            with transaction.atomic():
                if home_make(session, engine_name, size)[1]:
                    found_change(session.namespace_id, size)
    woken = list(due(Home.objects.all(), "next_look_at", now).values_list("pk", flat=True)[:AT_ONCE])
    for home_id in woken:
        enqueue_now(KEEP_HOME, home_id)
    return len(woken)


def _without_home() -> QuerySet[WorkbenchSession]:
    whose = Home.objects.filter(
        namespace=OuterRef("namespace"), owner=OuterRef("owner"), engine=OuterRef("job__engine")
    )
    running = WorkbenchSession.objects.filter(kind=Kind.JUPYTER, job__phase__in=UNFINISHED)
    return running.filter(~Exists(whose))


def home_keep(home_id: uuid.UUID, *, clock: Clock = timezone.now) -> None:
    """Measure it, or remove it where it is to go, if it is due. Repeats harmlessly."""
    mine = claim_due(Home.objects.filter(pk=home_id), "next_look_at", clock(), LEASE)
    if mine is None:
        return
    home = mine.first()
    if home is None:
        return
    try:
        engine = engine_named(home.engine)
        if not isinstance(engine, KeepsHomes):
            raise Misconfigured(f"The engine {home.engine} keeps no homes any more.", remedy="Remove it there.")
        if home.goes:
            _remove(home, engine, mine, clock)
        elif home.is_measured:
            _measure(home, engine, mine, clock)
        else:
            mine.update(next_look_at=None)
    except YardmasterError as error:
        log.warning("The %s: %s", home, error)
        _later(home, mine, clock(), f"{error.message} {error.remedy}".strip())


def _measure(home: Home, engine: KeepsHomes, mine: QuerySet[Home], clock: Clock) -> None:
    is_used = _is_used(home)  # asked before: what is written meanwhile is found by the next look
    found = engine.home_use(home.namespace_id, home.owner_id)
    size = found.size if found.is_whole else max(found.size, home.size)
    again = clock() + LOOK_EVERY if is_used else None
    columns = {"size": size, "is_whole": found.is_whole, "message": "", "setbacks": 0, "next_look_at": again}
    with transaction.atomic():
        if mine.filter(size=home.size, goes=False).update(**columns):
            found_change(home.namespace_id, size - home.size)


def _remove(home: Home, engine: KeepsHomes, mine: QuerySet[Home], clock: Clock) -> None:
    if _is_used(home):
        _later(home, mine, clock(), "Its session is still stopping.")
    elif engine.remove_home(home.namespace_id, home.owner_id):
        home_forget(home)
    else:
        _later(home, mine, clock(), "Its engine has not removed all of it yet.")


def _later(home: Home, mine: QuerySet[Home], now: datetime, message: str) -> None:
    mine.update(message=message, setbacks=home.setbacks + 1, next_look_at=now + delay(home.setbacks, SHORTEST, LONGEST))


def _is_used(home: Home) -> bool:
    """Whether a session there is not over."""
    sessions = WorkbenchSession.objects.filter(kind=Kind.JUPYTER, namespace=home.namespace_id, owner=home.owner_id)
    return any(
        one.job is not None and one.job.deleted_at is None and one.job.engine == home.engine and not one.job.is_over
        for one in sessions.select_related("job")
    )
