"""What the machines have, and what is left of them: asked of all at once.

A machine that does not answer keeps its place in the whole, as it was last, with nothing free.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from yardmaster.engines.base import Machine, MachineState
from yardmaster.engines.hosts.claims import amounts_of, free_beside, resources_in
from yardmaster.engines.hosts.connection import Links
from yardmaster.engines.hosts.environment import INSTALL, NO_ENVIRONMENT, TASKS, WORKBENCH
from yardmaster.engines.hosts.inventory import Host, Inventory, Listed
from yardmaster.engines.hosts.kinds import digests_of_release
from yardmaster.engines.hosts.records import Placement, Records
from yardmaster.engines.supervision.facts import NO_FACTS, task_of
from yardmaster.errors import Misconfigured, Unavailable, YardmasterError
from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.placement import Bound, Node
from yardmaster.queueing.resources import resources_of

_LONGEST = 64
"""Characters of what a machine says of itself."""


class Installed(StrEnum):
    """What a machine has of an environment."""

    NONE = "none"
    CURRENT = "current"
    """What this release installs."""
    OUTDATED = "outdated"
    """What another release installed, or what was installed for another Python. Tasks use it all the same."""
    OWN = "own"
    """The operator has named a Python that tasks use in its place."""


@dataclass(frozen=True)
class Survey:
    """One machine: for administrators, and for admission. `error`: why it takes no tasks now."""

    host: Host
    machine: Machine
    node: Node
    error: YardmasterError | None = None
    has_workbench: bool = False
    """Whether it runs sessions of JupyterLab, as far as is known."""
    has_spark: bool = False
    """Whether it has a Spark for jobs without pyspark among their packages, as far as is known."""
    has_java: bool = False
    environment: Installed | None = None
    """What tasks import, as `--install` put it there; None: not known."""
    workbench: Installed | None = None
    """The same of JupyterLab."""
    away_since: float | None = None
    """Seconds since 1970 since when it is not reached; None: it is."""

    @property
    def left(self) -> Resources:
        """What a new run may have of it now."""
        return self.machine.free


class Surveyor:
    """`owner` is this portal, as orders on the machines name it. `needs_environment`: a machine takes tasks only once
    what they import is there."""

    def __init__(
        self, inventory: Inventory | Listed, links: Links, records: Records, owner: str, *, needs_environment: bool
    ) -> None:
        self._inventory, self._links, self._records, self._owner = inventory, links, records, owner
        self._needs_environment = needs_environment

    def survey(self) -> list[Survey]:
        """Every machine that the list has, in its order."""
        hosts = self._inventory.hosts()
        answers = self._links.call_all({name: (one, "capacity", asked_of(one)) for name, one in hosts.items()})
        placements = self._records.placements()
        return [self._judged(hosts[name], answer, placements) for name, answer in answers.items()]

    def _judged(self, host: Host, answer: Any, placements: Iterable[Placement]) -> Survey:
        if isinstance(answer, YardmasterError):
            return self._away(host, answer, placements)
        try:
            has_workbench = bool(answer.get("workbench")) or not self._needs_environment
            spark, java = bool(answer.get("spark")) or not self._needs_environment, bool(answer.get("java"))
            self._records.note_machine(host.name, workbench=has_workbench, spark=spark, java=java)
            return replace(
                self._described(host, answer),
                has_workbench=has_workbench,
                has_spark=spark,
                has_java=java,
                environment=Installed.OWN if host.task_python else _installed(answer, TASKS, "environment"),
                workbench=_installed(answer, WORKBENCH, "workbench"),
            )
        except NO_FACTS:
            error = Unavailable(f"{host.name} sent an invalid answer.", remedy="Check whether its agent was changed.")
            return self._away(host, error, placements)

    def _described(self, host: Host, answer: Any) -> Survey:
        """As it says itself, but never more than its entry in the list says."""
        total = _at_most(host, resources_in(answer["total"]))
        self._records.note_machine(host.name, total=amounts_of(total), away_since=None)
        bound, others = list[Bound](), NOTHING
        for job, role, owner, amounts in answer["held"]:
            taken = resources_in(amounts)
            if owner == self._owner:
                bound.append(Bound(uuid.UUID(job), role, taken))
            else:
                others = others + taken
        free = free_beside(total, [], others)
        if host.is_cordoned:
            return self._closed(host, MachineState.CORDONED, total, tuple(bound), why="drained")
        if not answer["environment"] and not host.task_python and self._needs_environment:
            error = Misconfigured(f"{host.name}: {NO_ENVIRONMENT}", remedy=INSTALL)
            return self._closed(host, MachineState.NOT_READY, total, tuple(bound), error, why="not ready")
        node = Node(host.name, total, free, tuple(bound))
        left = node.left_beside(frozenset(one.job_id for one in bound))
        promised = resources_in(answer["promised"])
        rest = free_beside(resources_of({name: max(0, amount) for name, amount in left.items()}), [], promised)
        return Survey(host, Machine(host.name, MachineState.READY, total, rest, tuple(bound)), node)

    def _away(self, host: Host, error: YardmasterError, placements: Iterable[Placement]) -> Survey:
        since = None if self._links.is_connected(host.name) else self._records.away_since(host.name)
        remembered = self._records.machine(host.name)
        known = remembered.get("total")
        bound = []
        for one in placements:
            share = one.shares.get(host.name)
            for task in share.tasks if share is not None and one.left is None else ():
                role, _ = task_of(task)
                bound.append(Bound(one.key.job_id, role.value, one.spec.roles[role].resources))
        total = resources_in(known) if known else _configured(host)
        why = "away" if isinstance(error, Unavailable) else "not ready"
        closed = self._closed(host, MachineState.NOT_READY, total, tuple(bound), error, why=why)
        return replace(
            closed,
            away_since=since,
            has_workbench=bool(remembered.get("workbench")),
            has_spark=bool(remembered.get("spark")),
            has_java=bool(remembered.get("java")),
        )

    def _closed(
        self,
        host: Host,
        state: MachineState,
        total: Resources,
        bound: tuple[Bound, ...],
        error: YardmasterError | None = None,
        *,
        why: str,
    ) -> Survey:
        """It takes nothing; `why` is the reason in a word or two. What its own tasks hold is subtracted where it is
        known who still holds it."""
        taken = sum((one.resources for one in bound), NOTHING)
        return Survey(
            host,
            Machine(host.name, state, total, NOTHING, bound, message=_words(error)),
            Node(host.name, total, taken, bound, closed=why),
            error,
        )


def _installed(answer: Mapping[str, Any], link: str, name: str) -> Installed | None:
    """What a machine that answered has under a link, beside what this release installs there."""
    digest = str(answer.get(name) or "")
    if not digest:
        return Installed.NONE
    python, machine = (str(answer.get(one, ""))[:_LONGEST] for one in ("python", "machine"))
    wanted = digests_of_release(python, machine).get(link)
    if wanted is None:
        return None
    return Installed.CURRENT if digest == wanted else Installed.OUTDATED


def _words(error: YardmasterError | None) -> str:
    return "" if error is None else f"{error.message} {error.remedy}".strip()


def asked_of(host: Host) -> dict[str, Any]:
    """What an agent is told of its machine's entry in the list."""
    machine = {"cores": host.cores, "memory": host.memory, "gpus": None if host.gpus is None else list(host.gpus)}
    return {"machine": machine, "ports": None if host.ports is None else list(host.ports)}


def _at_most(host: Host, found: Resources) -> Resources:
    return Resources(
        found.cpu if host.cores is None else min(found.cpu, host.cores),
        found.memory if host.memory is None else min(found.memory, host.memory),
        found.gpus if host.gpus is None else min(found.gpus, len(host.gpus)),
    )


def _configured(host: Host) -> Resources:
    """Of a machine that never answered: as far as its entry says."""
    return Resources(host.cores or 0.0, host.memory or 0, len(host.gpus or ()))
