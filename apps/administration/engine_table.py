"""The engines as administrators see them: health, capacity, what is held and free of each resource, and machines.

Reads what workers have kept (`apps.jobs.engines.snapshots`), and asks no engine. Not here: draining (`queue_actions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Sum

from apps.administration.queue_table import EngineQueue, engine_queues
from apps.jobs.engines.configured import engine_names, settings_digest
from apps.jobs.models import EngineNow, EngineProbe, Hold, Reservation

STALE_AFTER = timedelta(minutes=5)
ORDER = ("cpu", "memory", "gpus")
_KINDS = {
    "LocalEngine": "This machine",
    "HostsEngine": "Machines by SSH",
    "KubernetesEngine": "Kubernetes cluster",
    "FakeEngine": "Simulated",
}
PROBES = {
    "reach": "Tasks reach the portal",
    "network": "The network isolates tasks",
    "processes": "A task's processes are limited",
}


@dataclass(frozen=True)
class Amount:
    """One resource of an engine. `used`: by the portal's tasks, as measured; None: this is not measured."""

    name: str
    total: float
    reserved: float
    others: float
    free: float
    used: float | None


@dataclass(frozen=True)
class ProbeShown:
    """What came of a probe. `is_well` None: it could not be told."""

    name: str
    words: str
    is_well: bool | None
    message: str
    remedy: str
    tried_at: datetime | None


@dataclass(frozen=True)
class EngineShown:
    """One engine. `state`: `answers`, `silent`, `stale` (no worker has asked it for a while) or `unknown` (not yet)."""

    name: str
    kind: str
    is_default: bool
    is_configured: bool
    state: str
    since: datetime | None
    asked_at: datetime | None
    message: str
    remedy: str
    machine_count: int
    waiting: int
    running_jobs: int
    running_tasks: int
    hold: Hold | None
    amounts: Sequence[Amount] = field(default=())
    probes: Sequence[ProbeShown] = field(default=())


def engines_shown(now: datetime, name: str | None = None) -> list[EngineShown]:
    """Every engine of the settings, and those on which jobs still wait or hold something, the default first; or the one
    of this name. Six statements."""
    queues = {one.name: one for one in engine_queues()}
    held = _held()
    names = sorted({*engine_names(), *queues, *held}, key=lambda one: (one != _default(), one))
    if name is not None:
        names = [one for one in names if one == name]
    kept = {one.engine: one for one in EngineNow.objects.filter(engine__in=names).defer("machines")}
    probes: dict[str, list[EngineProbe]] = {}
    for probe in EngineProbe.objects.filter(engine__in=names):
        probes.setdefault(probe.engine, []).append(probe)
    return [
        _shown(one, kept.get(one), queues.get(one), held.get(one, _Held()), probes.get(one, []), now) for one in names
    ]


def is_engine(name: str) -> bool:
    """Whether `engines_shown` has it. No statement for those of the settings."""
    return name in engine_names() or any(one.name == name for one in engine_queues()) or name in _held()


def _default() -> str:
    return str(settings.YARDMASTER_DEFAULT_ENGINE)


@dataclass
class _Held:
    jobs: int = 0
    tasks: int = 0
    amounts: dict[str, float] = field(default_factory=dict)


def _held() -> dict[str, _Held]:
    """What is held now, by engine. Two statements."""
    rows = Reservation.objects.filter(released_at=None).order_by()
    found: dict[str, _Held] = {}
    sums = rows.values_list("engine").annotate(
        Count("job", distinct=True), Sum("tasks"), Sum("cpu"), Sum("memory"), Sum("gpus")
    )
    for engine, jobs, tasks, cpu, memory, gpus in sums:
        found[engine] = _Held(jobs, tasks or 0, {"cpu": float(cpu), "memory": memory, "gpus": gpus})
    for engine, extended in rows.exclude(extended={}).values_list("engine", "extended"):
        amounts = found[engine].amounts
        for name, amount in extended.items():
            amounts[name] = amounts.get(name, 0) + amount
    return found


def _shown(
    name: str, now_row: EngineNow | None, queue: EngineQueue | None, held: _Held, probes: list[EngineProbe],
    now: datetime,
) -> EngineShown:  # fmt: skip
    row = now_row or EngineNow(engine=name)
    is_configured = name in settings.YARDMASTER_ENGINES
    return EngineShown(
        name=name,
        kind=kind_of(name),
        is_default=name == _default(),
        is_configured=is_configured,
        state=_state(row, now),
        since=row.since,
        asked_at=row.asked_at,
        message=row.message,
        remedy=row.remedy,
        machine_count=row.machine_count,
        waiting=queue.waiting if queue else 0,
        running_jobs=held.jobs,
        running_tasks=held.tasks,
        hold=queue.hold if queue else None,
        amounts=amounts_of(row.total, row.free, held.amounts, row.used),
        probes=_probes(name, probes) if is_configured else (),
    )


def kind_of(name: str) -> str:
    """What it is, in words; the name of its class where it is not one of Yardmaster's; empty: not in the settings."""
    found = settings.YARDMASTER_ENGINES.get(name)
    path = str(found.get("class", "")) if isinstance(found, Mapping) else ""
    short = path.rsplit(".", 1)[-1]
    return _KINDS.get(short, short)


def _state(row: EngineNow, now: datetime) -> str:
    if row.answers is None or row.asked_at is None:
        return "unknown"
    if now - row.asked_at > STALE_AFTER:
        return "stale"
    return "answers" if row.answers else "silent"


def amounts_of(
    total: Mapping[str, float], free: Mapping[str, float], held: Mapping[str, float], used: Mapping[str, float]
) -> list[Amount]:
    """Side by side, CPU and memory first; what there is none of, and no one holds, is left out. Pure."""
    names = [*ORDER, *sorted({*total, *held} - set(ORDER))]
    found = []
    for name in names:
        has, reserved = total.get(name, 0), held.get(name, 0)
        if has or reserved:
            left = free.get(name, 0)
            measured = used.get(name) if name in ("cpu", "memory") else None
            found.append(Amount(name, has, reserved, max(0, has - left), max(0, left - reserved), measured))
    return found


def _probes(name: str, probes: Sequence[EngineProbe]) -> list[ProbeShown]:
    """Those that were made under the settings as they are now."""
    digest = settings_digest(name)
    rows = {one.probe: one for one in probes if one.settings_digest == digest and one.tried_at is not None}
    return [
        ProbeShown(key, words, rows[key].is_well, rows[key].message, rows[key].remedy, rows[key].tried_at)
        for key, words in PROBES.items()
        if key in rows
    ]


def machines_of(name: str, search: str = "", state: str = "") -> list[dict[str, Any]]:
    """The engine's machines as kept, by name; those whose name, model or labels have `search` in them, and that are in
    this state. One statement."""
    row = EngineNow.objects.filter(engine=name).only("machines").first()
    found: list[dict[str, Any]] = row.machines if row else []
    if state:
        found = [one for one in found if one["state"] == state]
    return [one for one in found if _has(one, search.casefold())] if search else found


def _has(machine: Mapping[str, Any], search: str) -> bool:
    labels = (f"{key}={value}" for key, value in machine["labels"].items())
    return any(search in text.casefold() for text in (machine["name"], machine["model"], *labels))


def jobs_on(name: str, most: int) -> list[str]:
    """The ids of jobs that hold something of the engine, the newest first. One statement."""
    rows = Reservation.objects.filter(engine=name, released_at=None).order_by("-reserved_at").values_list("job_id")
    return list(dict.fromkeys(str(job_id) for (job_id,) in rows[: most * 5]))[:most]
