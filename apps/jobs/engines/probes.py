"""What is tried on engines because no setting tells it: whether tasks reach the portal, and nothing that they must not.

Tried before the first job, again when the address or the engine's options change, and daily; the network also whenever
a worker starts. What came of it is shown with the engine; where tasks would wait for the portal in vain, jobs wait.

One failure is none: a portal that has just started, or a network that is slow to let a new pod through, is tried once
more before anything is held up. What could not be determined holds up nothing. Not here: how it is tried (the
engine's).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from apps.dispatch.leases import claim_due
from apps.jobs.engines.configured import engine_named, engine_names, settings_digest
from apps.jobs.models import EngineProbe
from yardmaster.engines.base import Finding, Probe, Probes
from yardmaster.errors import Misconfigured, YardmasterError

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]

LEASE = timedelta(minutes=3)
"""Longer than a probe takes; after it, another worker tries."""
AFTER_SUCCESS = timedelta(days=1)
AFTER_FIRST_FAILURE = timedelta(seconds=15)
AFTER_FAILURE: Mapping[Probe, timedelta] = {Probe.REACH: timedelta(minutes=1), Probe.NETWORK: timedelta(hours=1)}
"""Of each probe that is made regularly. Jobs wait for the one, and a network is not replaced within minutes."""
AFTER_DOUBT = timedelta(minutes=10)
SURE_AFTER = 2
"""Failures one after the other."""
_MEANT: Mapping[Probe, str] = {
    Probe.REACH: "whether tasks reach the portal",
    Probe.NETWORK: "whether the network isolates tasks",
    Probe.PROCESSES: "whether a task's number of processes is limited",
}
_UNTRIED: Mapping[str, Any] = {"is_well": None, "failures": 0, "message": "", "remedy": "", "tried_at": None}


def probes_sweep(*, clock: Clock = timezone.now) -> bool:
    """Make the first probe that is due, so that no call takes longer than one. Repeats harmlessly; of several workers
    one tries. Returns whether there was one."""
    return any(_make(name, engine, probe, clock) for name, engine in _engines() for probe in AFTER_FAILURE)


def network_is_due(*, clock: Clock = timezone.now) -> None:
    """A worker has started, which it also does after changes to the cluster: try every engine's network with the next
    sweep. Of those that were never tried there is nothing to note."""
    EngineProbe.objects.filter(probe=Probe.NETWORK).update(next_at=clock())


def known_of(engine: str, probe: Probe) -> EngineProbe | None:
    """What is known of this engine as the settings are now; None where nothing is."""
    return EngineProbe.objects.filter(engine=engine, probe=probe, settings_digest=settings_digest(engine)).first()


def all_known_of(engine: str) -> dict[str, EngineProbe]:
    """The same of every probe, by its name, in one statement."""
    rows = EngineProbe.objects.filter(engine=engine, settings_digest=settings_digest(engine))
    return {row.probe: row for row in rows}


def refuse_unreachable(engine: str) -> None:
    """Before a job is handed to an engine. Raises `Misconfigured` where its tasks would wait for the portal in vain."""
    row = known_of(engine, Probe.REACH)
    if row is not None and row.is_well is False:
        raise Misconfigured(row.message, remedy=row.remedy)


def try_now(engine: Probes, probe: Probe) -> Finding:
    """What comes of it; of an engine that fails to try it, that nothing is known."""
    try:
        return engine.probe(probe, settings.TASK_URL)
    except YardmasterError as error:
        return Finding(None, f"The engine could not test {_MEANT[probe]}: {error.message}", error.remedy)


def next_of(probe: Probe, failures: int, is_well: bool | None) -> tuple[int, bool | None, timedelta]:
    """How many failures there are now, what is known by that, and when it is tried again. Pure."""
    if is_well:
        return 0, True, AFTER_SUCCESS
    if is_well is None:
        return 0, None, AFTER_DOUBT
    failures += 1
    if failures < SURE_AFTER:
        return failures, None, AFTER_FIRST_FAILURE
    return failures, False, AFTER_FAILURE[probe]


def _engines() -> Iterator[tuple[str, Probes]]:
    for name in engine_names():
        with contextlib.suppress(Misconfigured):  # the jobs say so
            engine = engine_named(name)
            if isinstance(engine, Probes):
                yield name, engine


def _make(name: str, engine: Probes, probe: Probe, clock: Clock) -> bool:
    now, digest = clock(), settings_digest(name)
    row, _ = EngineProbe.objects.get_or_create(
        engine=name, probe=probe, defaults={"settings_digest": digest, "next_at": now}
    )
    mine = EngineProbe.objects.filter(pk=row.pk)
    if row.settings_digest != digest:  # what is known is of other settings
        others = mine.filter(settings_digest=row.settings_digest)
        claimed = bool(others.update(settings_digest=digest, next_at=now + LEASE, **_UNTRIED))
        row.failures = 0
    else:
        claimed = claim_due(mine.filter(settings_digest=digest), "next_at", now, LEASE) is not None
    if not claimed:
        return False
    found = try_now(engine, probe)
    failures, is_well, pause = next_of(probe, row.failures, found.is_well)
    if found.is_well is not True:
        log.warning("Engine %s: %s %s", name, found.message, found.remedy)
    now = clock()
    mine.filter(settings_digest=digest).update(
        is_well=is_well, failures=failures, message=found.message, remedy=found.remedy, tried_at=now,
        next_at=now + pause,
    )  # fmt: skip
    return True
