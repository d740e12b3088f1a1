"""Whether tasks on an engine reach the portal: tried from there before the first job, again when the address or the
engine's options change, and daily. What came of it is shown with the engine, and by a job that cannot be helped by it.

One failure is none: a portal that has just started, or a network that is slow to let a new pod through, is tried once
more before anything is held up. What could not be told holds up nothing. Not here: how it is tried (the engine's).
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from apps.jobs.engines import engine_named, engine_names
from apps.jobs.models import EngineReach
from yardmaster.engines.base import Reach, TriesReach
from yardmaster.errors import Misconfigured, YardmasterError

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]

LEASE = timedelta(minutes=3)
"""Longer than a try takes; after it, another worker tries."""
AFTER_SUCCESS = timedelta(days=1)
AFTER_FIRST_FAILURE = timedelta(seconds=15)
AFTER_FAILURE = timedelta(minutes=1)
AFTER_DOUBT = timedelta(minutes=10)
SURE_AFTER = 2
"""Failures one after the other."""


def reach_sweep(*, clock: Clock = timezone.now) -> int:
    """Try what is due. Repeats harmlessly; of several workers one tries. Returns how many engines were tried."""
    tried = 0
    for name in engine_names():
        try:
            engine = engine_named(name)
        except Misconfigured:  # the jobs say so
            continue
        if isinstance(engine, TriesReach):
            tried += _try(name, engine, clock)
    return tried


def reach_of(engine: str) -> EngineReach | None:
    """What is known of this engine as the settings are now; None where nothing is."""
    return EngineReach.objects.filter(engine=engine, subject=_subject(engine)).first()


def refuse_unreachable(engine: str) -> None:
    """Before a job is handed to an engine. Raises `Misconfigured` where its tasks would wait for the portal in vain."""
    row = reach_of(engine)
    if row is not None and row.reached is False:
        raise Misconfigured(row.message, remedy=row.remedy)


def next_of(failures: int, reached: bool | None) -> tuple[int, bool | None, timedelta]:
    """How many failures there are now, what is known by that, and when it is tried again. Pure."""
    if reached:
        return 0, True, AFTER_SUCCESS
    if reached is None:
        return 0, None, AFTER_DOUBT
    failures += 1
    if failures < SURE_AFTER:
        return failures, None, AFTER_FIRST_FAILURE
    return failures, False, AFTER_FAILURE


def _try(name: str, engine: TriesReach, clock: Clock) -> int:
    now, subject = clock(), _subject(name)
    row, _ = EngineReach.objects.get_or_create(engine=name, defaults={"subject": subject, "next_at": now})
    until = now + LEASE
    mine = EngineReach.objects.filter(engine=name)
    if row.subject != subject:  # what is known is of other settings
        fresh: dict[str, Any] = {"reached": None, "failures": 0, "message": "", "remedy": "", "tried_at": None}
        claimed = mine.filter(subject=row.subject).update(subject=subject, next_at=until, **fresh)
        row.failures = 0
    else:
        claimed = mine.filter(subject=subject, next_at__lte=now).update(next_at=until)
    if not claimed:
        return 0
    try:
        found = engine.reach(settings.TASK_URL)
    except YardmasterError as error:
        found = Reach(None, f"It is not known whether tasks reach the portal: {error.message}", error.remedy)
    failures, reached, pause = next_of(row.failures, found.reached)
    if found.reached is not True:
        log.warning("Engine %s: %s %s", name, found.message, found.remedy)
    now = clock()
    mine.filter(subject=subject).update(
        reached=reached, failures=failures, message=found.message, remedy=found.remedy, tried_at=now,
        next_at=now + pause,
    )  # fmt: skip
    return 1


def _subject(engine: str) -> str:
    """Tells nothing of the options, which may hold secrets."""
    told = [settings.TASK_URL, settings.YARDMASTER_ENGINES.get(engine)]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
