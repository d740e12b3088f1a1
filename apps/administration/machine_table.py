"""What administrators see of the machines of the engine `hosts`: their entries, and what a worker received last.

Asks no machine: a worker does, every half minute (`apps.jobs.engines.snapshots`). Not here: changing anything
(`machines`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from apps.administration.machine_files import KeptFiles, files_by_machine
from apps.administration.machine_rules import why_not_removed
from apps.administration.machines import Source, tasks_by_machine
from apps.administration.queue_table import Named, named
from apps.errors import NotFound
from apps.jobs.engines.machine_list import host_of
from apps.jobs.models import EngineNow, HostMachine
from yardmaster.engines.base import MachineState
from yardmaster.engines.hosts.inventory import Host
from yardmaster.engines.hosts.surveying import Installed

CLOCK_OFF = 2.0
"""Seconds that a clock may be wrong without being shown as wrong."""


@dataclass(frozen=True)
class MachineShown:
    """One machine. `state`: `new` (not looked at yet since it was listed or changed), `no_key` (its host key has to be
    accepted), `away`, `not_ready`, `draining`, `drained` or `ready`."""

    host: Host
    state: str
    tasks: int = 0
    version: int = 0
    message: str = ""
    away_since: datetime | None = None
    clock: float | None = None
    environment: str | None = None
    """What tasks import, as a value of `surveying.Installed`; None: not known."""
    workbench: str | None = None
    """The same of JupyterLab."""
    has_spark: bool | None = None
    """Whether Spark is installed; None: not known."""
    total: Mapping[str, float] = field(default_factory=dict)
    free: Mapping[str, float] = field(default_factory=dict)
    jobs: tuple[Named, ...] = ()
    known_keys: tuple[str, ...] = ()
    shown_key: str = ""
    unshown: str = ""
    not_removed: str = ""
    files: tuple[KeptFiles, ...] = ()
    """Of Jupyters that have their home directory there."""

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def has_environment(self) -> bool | None:
        return None if self.environment is None else self.environment != Installed.NONE

    @property
    def is_outdated(self) -> bool:
        """Whether another release of the portal installed something of what is there."""
        return Installed.OUTDATED in (self.environment, self.workbench)

    @property
    def is_clock_wrong(self) -> bool:
        return self.clock is not None and abs(self.clock) >= CLOCK_OFF

    @property
    def clock_words(self) -> str:
        """Such as "3.5 s behind"."""
        return f"{abs(self.clock or 0):.1f} s {'behind' if (self.clock or 0) < 0 else 'ahead of'}"


INSTALLED = [one.value for one in Installed]
WORDS = {
    "new": "Not checked yet", "no_key": "Host key not accepted", "away": "Not reachable", "not_ready": "Not ready",
    "draining": "Draining", "drained": "Drained", "ready": "Ready",
}  # fmt: skip


def machines_shown(where: Source) -> list[MachineShown]:
    """Every machine, in the order of the list. At most five statements. Raises `Misconfigured`."""
    versions: dict[str, int] = {}
    if where.is_here:
        rows = list(HostMachine.objects.order_by("name"))
        hosts = {row.name: host_of(row.name, row.entry, row.is_draining) for row in rows}
        versions = {row.name: row.version for row in rows}
    else:
        hosts = dict(where.made().inventory.hosts())
    return _shown(where, hosts, versions)


def machine_shown(where: Source, name: str) -> MachineShown:
    """One of them. Raises NotFound, and `Misconfigured`."""
    found = next((one for one in machines_shown(where) if one.name == name), None)
    if found is None:
        raise NotFound("There is no machine of this name.", "unknown_machine")
    return found


def state_of(host: Host, received: Mapping[str, Any], tasks: int, known: tuple[str, ...]) -> str:
    """Which of the states of `MachineShown` it is in, by what was received of it last. Pure."""
    details = received.get("details", {})
    if details.get("place") != host.place:
        return "new"
    if "unshown" in details or (details.get("shown") and details["shown"] not in known):
        return "no_key"
    if details.get("shown"):  # accepted since it was asked
        return "new"
    if details.get("away_since") is not None:
        return "away"
    if host.is_cordoned:
        return "draining" if tasks else "drained"
    if received.get("state") == MachineState.CORDONED:  # not any more, since it was asked
        return "new"
    return "ready" if received.get("state") == MachineState.READY else "not_ready"


def _shown(where: Source, hosts: Mapping[str, Host], versions: Mapping[str, int]) -> list[MachineShown]:
    engine = where.made()
    row = EngineNow.objects.filter(engine=where.engine).only("machines").first()
    received = {one["name"]: one for one in (row.machines if row else [])}
    tasks, files = tasks_by_machine(engine), files_by_machine(engine)
    names = named({UUID(key) for name in hosts for key in received.get(name, {}).get("jobs", ())})
    found = []
    for name, host in hosts.items():
        one = received.get(name, {})
        known = tuple(engine.keys.known(host))
        about = _facts(one, names) if one.get("details", {}).get("place") == host.place else {}
        why = why_not_removed(
            name, tasks[name], is_draining=host.is_cordoned, has_answered="total" in engine.records.machine(name)
        )
        found.append(
            MachineShown(
                host, state_of(host, one, tasks[name], known), tasks[name], versions.get(name, 0), known_keys=known,
                not_removed=why, files=files.get(name, ()), **about,
            )
        )  # fmt: skip
    return found


def _facts(received: Mapping[str, Any], names: Mapping[UUID, Named]) -> dict[str, Any]:
    """What was received of a machine, as `MachineShown` has it. Pure."""
    details = received["details"]
    since = details.get("away_since")
    return {
        "message": received["message"],
        "away_since": None if since is None else datetime.fromtimestamp(since, UTC),
        "clock": details.get("clock"),
        "environment": _installed(details.get("environment")),
        "workbench": _installed(details.get("workbench")),
        "has_spark": details.get("spark"),
        "total": received["total"],
        "free": received["free"],
        "jobs": tuple(names[UUID(key)] for key in received["jobs"] if UUID(key) in names),
        "shown_key": details.get("shown", ""),
        "unshown": details.get("unshown", ""),
    }


def _installed(found: Any) -> str | None:
    """None also for what a worker of an earlier release wrote."""
    return str(found) if found in list(Installed) else None
