"""How a run begins on several machines, and how it is removed from all of them.

It begins in three steps, each of which may be interrupted: every machine promises what its tasks need (claims); the
portal writes down where the run is (placement); every machine makes its part. A call that finds a placement does the
third step again. One that failed before that leaves claims, which end with the connection that made them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yardmaster.engines.base import TaskAccess
from yardmaster.engines.hosts.claims import amounts_of
from yardmaster.engines.hosts.connection import Away, Links
from yardmaster.engines.hosts.inventory import Host, Inventory
from yardmaster.engines.hosts.placing import Task, placed
from yardmaster.engines.hosts.records import Placement, Records, Share
from yardmaster.engines.hosts.surveying import Surveyor, asked_of
from yardmaster.engines.supervision.facts import Order, key_to_json, task_name
from yardmaster.errors import Unavailable, YardmasterError
from yardmaster.ids import JobKey
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.strategy import server_roles


class Submitter:
    """`options`: what the engine's settings say of all tasks."""

    def __init__(
        self,
        inventory: Inventory,
        links: Links,
        records: Records,
        surveyor: Surveyor,
        owner: str,
        options: Mapping[str, Any],
    ) -> None:
        self._inventory, self._links, self._records, self._owner = inventory, links, records, owner
        self._surveyor, self._options = surveyor, options

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        """See `HostsEngine.submit`."""
        with self._records.locked(key):
            placement = self._records.placement(key)
            if placement is not None and placement.left is not None:
                self._remove(placement)
                raise Unavailable(f"What was there before of {key.name} is being removed.")
            if placement is None:
                placement = self._place(spec, key)
                self._records.place(placement)
            self._make(spec, placement, access)

    def clean_up(self, key: JobKey) -> None:
        """See `HostsEngine.clean_up`."""
        with self._records.locked(key):
            placement = self._records.placement(key)
            if placement is not None:
                self._remove(placement)

    def finish_removals(self) -> None:
        """Remove what is left on machines that did not answer when it was to be removed."""
        for one in self._records.placements():
            if one.left is not None:
                with self._records.locked(one.key):
                    again = self._records.placement(one.key)
                    if again is not None and again.left is not None:
                        self._remove(again)

    # --- beginning ---------------------------------------------------------------------------------------------------

    def _place(self, spec: TrainingSpec, key: JobKey) -> Placement:
        """Choose the machines, and have each promise its part. Raises `Unavailable`, and then nothing is promised."""
        surveys = {one.host.name: one for one in self._surveyor.survey()}
        chosen = placed(spec, {name: one.left for name, one in surveys.items() if one.left.cpu > 0})
        if chosen is None:
            away = [one.error.message for one in surveys.values() if one.error is not None]
            raise Unavailable(
                " ".join(["No machines have the space for all tasks now.", *away]),
                remedy="It is tried again, until machines are free or back.",
            )
        hosts = {name: surveys[name].host for name in chosen}
        amounts = {role.value: amounts_of(one.resources) for role, one in spec.roles.items()}
        calls = {name: (hosts[name], "claim", self._wish(spec, key, hosts[name], chosen[name])) for name in chosen}
        answers = self._links.call_all(calls)
        errors = [one for one in answers.values() if isinstance(one, YardmasterError)]
        if errors:
            made = [name for name, one in answers.items() if not isinstance(one, YardmasterError)]
            self._links.call_all({name: (hosts[name], "unclaim", {"key": key_to_json(key)}) for name in made})
            raise Unavailable(errors[0].message, remedy=errors[0].remedy)
        shares = {
            name: Share(
                hosts[name].address,
                tuple(task_name(*task) for task in chosen[name]),
                {task: int(port) for task, port in answer["ports"].items()},
                {task: tuple(cards) for task, cards in answer["gpus"].items()},
            )
            for name, answer in answers.items()
        }
        return Placement(key, shares, None, amounts)

    def _wish(self, spec: TrainingSpec, key: JobKey, host: Host, tasks: list[Task]) -> dict[str, Any]:
        return {
            **asked_of(host),
            "key": key_to_json(key),
            "tasks": {task_name(*task): amounts_of(spec.roles[task[0]].resources) for task in tasks},
            "with_ports": [task_name(*task) for task in tasks if task[0] in server_roles(spec)],
        }

    def _make(self, spec: TrainingSpec, placement: Placement, access: TaskAccess) -> None:
        """Every machine's part. Where one cannot make it as it was promised, nothing is left anywhere."""
        hosts, calls = self._inventory.hosts(), {}
        for name, share in placement.shares.items():
            if name not in hosts:
                self._remove(placement)
                raise Unavailable(f"The machine {name} is not in the list of machines any more.")
            order = Order(
                placement.key,
                spec,
                access.portal_url,
                tuple(self._options["command"]),
                self._options["environment"],
                share.gpus,
                share.ports,
                host=share.host,
                elsewhere=placement.elsewhere(name),
                owner=self._owner,
            )
            more = {
                "token": access.token,
                "python": hosts[name].task_python,
                "open_servers": self._options["open_servers"],
            }
            calls[name] = (hosts[name], "submit", {"order": order.to_json(), **more})
        answers = self._links.call_all(calls)
        errors = [one for one in answers.values() if isinstance(one, YardmasterError)]
        for error in errors:
            if not isinstance(error, Away):  # what was promised is not to be had
                self._remove(placement)
                raise error
        if errors:
            raise errors[0]

    # --- removing ----------------------------------------------------------------------------------------------------

    def _remove(self, placement: Placement) -> None:
        """From every machine that still has something of it. First it is written down that it is no more."""
        left = placement.left if placement.left is not None else tuple(placement.shares)
        if placement.left is None:
            self._records.removing(placement, left)
        hosts = self._inventory.hosts()
        key = {"key": key_to_json(placement.key)}
        answers = self._links.call_all({name: (hosts[name], "clean_up", key) for name in left if name in hosts})
        # A machine that was taken off the list has nothing for us any more.
        failed = {name: one for name, one in answers.items() if isinstance(one, YardmasterError)}
        self._records.removing(placement, tuple(failed))
        for error in failed.values():
            if not isinstance(error, Away) and error.retryable:
                raise error
