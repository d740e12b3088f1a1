"""The engine that runs a job's tasks as processes of several machines, which it reaches by SSH.

It isolates no task: those of one machine run as one user, and can read what that user can. The verbs here decide which
task runs where and ask the agents of the machines; the truth of a run is in the files there, so that any process of the
portal may call any verb at any time.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from yardmaster.engines.base import Address, Capacity, HomeUse, Machine, Servers, TaskAccess
from yardmaster.engines.drivers import DriverAddress
from yardmaster.engines.hosts import spark
from yardmaster.engines.hosts.connection import Away, Call, Links
from yardmaster.engines.hosts.describing import machines_described
from yardmaster.engines.hosts.homes import Homes
from yardmaster.engines.hosts.inventory import Host, inventory_of
from yardmaster.engines.hosts.keys import Keys
from yardmaster.engines.hosts.observing import Observer
from yardmaster.engines.hosts.records import Placement, Records
from yardmaster.engines.hosts.refusing import problems_of
from yardmaster.engines.hosts.submission import Submitter
from yardmaster.engines.hosts.surveying import Survey, Surveyor
from yardmaster.engines.hosts.views import lines_in
from yardmaster.engines.supervision.facts import key_from_json, key_to_json, task_name
from yardmaster.engines.supervision.folder import DATA, translated
from yardmaster.errors import Problem, SpecRejected, Unavailable, YardmasterError
from yardmaster.ids import JobKey
from yardmaster.job.spec import NOTHING, Role, TrainingSpec
from yardmaster.job.strategy import leading_task, server_roles
from yardmaster.lifecycle.phases import Observation

_News = queue.Queue[tuple[str, JobKey]]
"""Which machine says that which run has changed."""
_REACH = "From the machines that reach the private addresses of the portal's machines, without a password."


class HostsEngine:
    """`machines` is the list of them (`inventory.inventory_of`), `root` a folder of its own on a local disk, which all
    processes of the portal share. `owner` tells this portal from others that use the same machines. Tasks of a machine
    that has not answered for `lost_after` seconds are lost. Jobs that start servers are refused by machines that cannot
    keep them from listening on every network, unless `open_servers`."""

    isolates = False
    has_way_out = True
    driver_address = DriverAddress.OWN

    def __init__(
        self,
        root: Path | str,
        machines: Path | str,
        *,
        name: str = "hosts",
        owner: str = "",
        lost_after: float = 300.0,
        open_servers: bool = False,
        command: Collection[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.root = Path(root).resolve()
        self.inventory = inventory_of(machines)
        self.keys = Keys(self.root)
        self.records = Records(self.root)
        self._news: list[_News] = []
        self.links = Links(self.keys, self._hear, self._linked)
        self._surveyor = Surveyor(self.inventory, self.links, self.records, owner, needs_environment=not command)
        self._observer = Observer(self.inventory, self.links, self.records, timedelta(seconds=lost_after))
        options = {"open_servers": open_servers, "command": list(command), "environment": dict(environment or {})}
        self.homes = Homes(self.root, self.inventory, self.links)
        self._submitter = Submitter(
            self.inventory, self.links, self.records, self._surveyor, self.homes, owner, options
        )

    # --- questions ---------------------------------------------------------------------------------------------------

    def capacity(self) -> Capacity:
        """The machines together. What is left on those that came back is removed on the way."""
        with translated(self.root):
            self._submitter.finish_removals()
            surveys = self.survey()
            nodes = tuple(one.node for one in surveys)
            homes, known = self.homes.machines(), self._remembered()
        usable = [one.total for one in nodes]
        return Capacity(
            total=sum(usable, NOTHING),
            free=sum((one.free for one in nodes), NOTHING),
            largest_task=max(usable, key=lambda one: (one.cpu, one.memory), default=NOTHING),
            nodes=nodes,
            homes=homes,
            notebooks=frozenset(one.host.name for one in surveys if one.has_workbench),
            spark=spark.machines_with_spark(known),
            java=frozenset(name for name, one in known.items() if one.get("java")),
        )

    def machines(self) -> list[Machine]:
        """Every one that the list has, by name, with what `describing` says of it."""
        return machines_described(self.survey(), self.keys, self.links)

    def survey(self) -> list[Survey]:
        """The same in the order of the list, with why a machine takes no tasks."""
        with translated(self.root):
            return self._surveyor.survey()

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        """One question to each machine that has one of the runs. Each learns what has come of the others."""
        with translated(self.root):
            return self._observer.observe(keys)

    def refusal(self, spec: TrainingSpec) -> Problem | None:
        """Why no machine runs this job, whatever is free."""
        return next(iter(self._problems(spec)), None)

    def has_own_spark(self) -> bool:
        """Whether some machine is known to have one; none is asked."""
        return bool(spark.machines_with_spark(self._remembered()))

    def missing_for_spark(self) -> str:
        """See `RunsSpark`: by what is known of the machines. Where one has Spark, jobs need nothing."""
        return spark.lacks(self._remembered())

    def preview(self, spec: TrainingSpec, key: JobKey, user: uuid.UUID | None = None) -> list[dict[str, Any]]:
        """One entry per process, in the order in which they start. Machines and ports are chosen by `submit`."""
        self._refuse_impossible(spec)
        entries = []
        for role, index in spec.tasks():
            asked = spec.roles[role].resources
            entries.append(
                {
                    "kind": "process",
                    "task": task_name(role, index),
                    "machine": "<one that has the space>",
                    "limits": {"cpu": asked.cpu, "memory": asked.memory, "gpus": asked.gpus},
                    "has_port": role in server_roles(spec),
                }
            )
        return entries

    def tail(self, key: JobKey, role: Role, index: int, lines: int) -> list[str]:
        """The last lines that the task's first process itself printed (of the last 2 MiB at most). Raises
        `Unavailable` whatever the machine says in their place: nothing waits for them."""
        host = self._host_of(key, role, index)
        if host is None:
            return []
        task = task_name(role, index)
        try:
            return lines_in(self.links.call(host, "tail", key=key_to_json(key), task=task, lines=lines), lines)
        except YardmasterError as error:
            raise Unavailable(error.message, remedy=error.remedy) from error

    def nudge(self, key: JobKey, role: Role, index: int) -> None:
        host = self._host_of(key, role, index)
        if host is not None:
            self.links.call(host, "nudge", key=key_to_json(key), task=task_name(role, index))

    def servers(self, spec: TrainingSpec, key: JobKey) -> Servers | None:
        """The ports that `submit` gave out; None before that, and when the run was removed."""
        placement = self._placement(key)
        if placement is None:
            return None
        found: dict[Role, list[str]] = {}
        for role, index in spec.tasks():
            address = placement.address(task_name(role, index))
            if address:
                found.setdefault(role, []).append(address)
        machine = placement.tasks().get(task_name(*leading_task(spec)), "")
        # The same path on all machines of such a job: each has a link there to the copy of a task of its own.
        data_dir = f"{self.records.machine(machine).get('folder', '')}/runs/{key.name}/{DATA}"
        return Servers({role: tuple(some) for role, some in found.items()}, _REACH, data_dir)

    def address(self, spec: TrainingSpec, key: JobKey, role: Role, index: int) -> Address | None:
        """The port that `submit` gave out, on the machine's private address."""
        placement = self._placement(key)
        found = "" if placement is None else placement.address(task_name(role, index))
        host, _, port = found.rpartition(":")
        return Address(host, int(port)) if host else None

    def changes(self) -> Iterator[JobKey]:
        """Runs that have changed, for ever; all of a machine's when it was connected again."""
        mine: _News = queue.Queue(_MOST_NEWS)
        self._news.append(mine)
        return self._follow(mine)

    def close(self) -> None:
        """End the connections. What runs on the machines runs on."""
        self.links.close()

    # --- actions -----------------------------------------------------------------------------------------------------

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        """Claim what the tasks need on the machines, then make the run on each. Interrupted anywhere, a repeated call
        finishes it. Raises `Unavailable` where there is no place now, or a machine does not answer."""
        self._refuse_impossible(spec)
        with translated(self.root):
            self._submitter.submit(spec, key, access)

    def release(self, key: JobKey, roles: Collection[Role]) -> None:
        """SIGTERM to the tasks of these roles, SIGKILL after the time that the spec gives."""
        self._tell_all(key, "release", roles=[role.value for role in roles])

    def stop(self, key: JobKey, grace: timedelta) -> None:
        """SIGTERM to every task now, SIGKILL to whatever of it is left after `grace`. What runs on a machine that does
        not answer is ended when it does (`clean_up`)."""
        self._tell_all(key, "stop", grace=grace.total_seconds())

    def restart(self, key: JobKey) -> bool:
        """Start the tasks of lost machines on others, and with them all that have a server: addresses change. Raises
        `Unavailable` while there is no place for them."""
        with translated(self.root):
            return self._submitter.start_again(key, self._observer.after_losses)

    def clean_up(self, key: JobKey) -> None:
        """Kill what runs and remove the run on every machine. One that does not answer does so when it is back; for all
        others the run is gone."""
        with translated(self.root):
            self._submitter.clean_up(key)

    # --- homes -------------------------------------------------------------------------------------------------------

    def home_size(self) -> int:
        """They are folders, which nothing bounds."""
        return 0

    def check_homes(self) -> None:
        """The machines make all that they need."""

    def home_use(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> HomeUse:
        """Asked of the machine that has it. Raises `Unavailable` where that does not answer."""
        with translated(self.root):
            return self.homes.use(namespace_id, owner_id)

    def remove_home(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> bool:
        """In steps of some seconds. Raises the same."""
        with translated(self.root):
            return self.homes.remove(namespace_id, owner_id)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _refuse_impossible(self, spec: TrainingSpec) -> None:
        problems = self._problems(spec)
        if problems:
            raise SpecRejected(problems)

    def _problems(self, spec: TrainingSpec) -> list[Problem]:
        """Which machines have JupyterLab and Spark is remembered of the last look at them."""
        known = self._remembered()
        has_workbench = any(one.get("workbench") for one in known.values())
        return list(filter(None, [*problems_of(spec, has_workbench=has_workbench), spark.refusal(spec, known)]))

    def _remembered(self) -> dict[str, Mapping[str, Any]]:
        """What each machine of the list had when it was looked at last, by name."""
        return {name: self.records.machine(name) for name in self.inventory.hosts()}

    def _placement(self, key: JobKey) -> Placement | None:
        placement = self.records.placement(key)
        return placement if placement is not None and placement.left is None else None

    def _host_of(self, key: JobKey, role: Role, index: int) -> Host | None:
        placement = self._placement(key)
        machine = "" if placement is None else placement.tasks().get(task_name(role, index), "")
        return self.inventory.hosts().get(machine)

    def _tell_all(self, key: JobKey, verb: str, **arguments: Any) -> None:
        """To every machine of the run. Those that do not answer do it when they are back."""
        with translated(self.root):
            placement = self._placement(key)
            if placement is None:
                return
            hosts, asked = self.inventory.hosts(), {"key": key_to_json(key), **arguments}
            calls = {name: (hosts[name], verb, asked) for name in placement.shares if name in hosts}
            answers = self.links.call_all(calls)
            away = [name for name in placement.shares if isinstance(answers.get(name, _UNLISTED), Away)]
            if away:
                self.records.note_pending(key, away, verb, arguments)
            for answer in answers.values():
                if isinstance(answer, YardmasterError) and not isinstance(answer, Away):
                    raise answer

    # --- news --------------------------------------------------------------------------------------------------------

    def _hear(self, machine: str, news: Mapping[str, Any]) -> None:
        for data in news.get("changed", ()):
            for one in list(self._news):
                with contextlib.suppress(queue.Full):  # it is found at the job's next look
                    one.put_nowait((machine, key_from_json(data)))

    def _linked(self, machine: str, hello: Mapping[str, Any]) -> None:
        folder, boot = str(hello.get("folder", "")), str(hello.get("boot", ""))
        self.records.note_machine(machine, folder=folder[:1000], boot=boot[:100])

    def _follow(self, mine: _News) -> Iterator[JobKey]:
        over = threading.Event()
        watcher = threading.Thread(target=self._keep_watching, args=(mine, over), name="watch machines", daemon=True)
        watcher.start()
        try:
            while True:
                machine, key = mine.get()
                if self._has_part(machine, key):
                    yield key
        finally:
            over.set()
            self._news.remove(mine)

    def _has_part(self, machine: str, key: JobKey) -> bool:
        """Of other runs it has no news: who has taken a machine over can send any."""
        placement = self.records.placement(key)
        return placement is not None and machine in {**placement.shares, **placement.gone, **(placement.left or {})}

    def _keep_watching(self, mine: _News, over: threading.Event) -> None:
        """Have every machine tell its news, and look at all of its runs each time it was connected again."""
        watched: dict[str, object] = {}
        while not over.is_set():
            with contextlib.suppress(YardmasterError):
                hosts = self.inventory.hosts()
                new: dict[str, Call] = {
                    name: (host, "watch", {}) for name, host in hosts.items() if not self._is_watched(name, watched)
                }
                answers = self.links.call_all(new)
                begun = {name for name, one in answers.items() if not isinstance(one, YardmasterError)}
                watched |= {name: self.links.link(name) for name in begun}
                for placement in self.records.placements() if begun else ():
                    for name in [*begun.intersection(placement.shares)][:1] if placement.left is None else ():
                        mine.put((name, placement.key))
            over.wait(_LOOK_AGAIN)

    def _is_watched(self, name: str, watched: Mapping[str, object]) -> bool:
        link = self.links.link(name)
        return link is not None and watched.get(name) is link


_MOST_NEWS = 10_000
"""That wait to be passed on."""
_UNLISTED = Away("It is no longer in the list of machines.")
_LOOK_AGAIN = 2.0
"""Seconds after which it is looked whether a machine has to be asked for its news again."""
