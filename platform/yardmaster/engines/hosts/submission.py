"""How a run begins on several machines, and how it is removed from all of them.

It begins in three steps, each of which may be interrupted: every machine promises what its tasks need (claims); the
portal writes down where the run is (placement); every machine makes its part. A call that finds a placement does the
third step again. One that failed before that leaves claims, which end with the connection that made them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from yardmaster.engines.base import TaskAccess
from yardmaster.engines.hosts.claims import amounts_of
from yardmaster.engines.hosts.connection import Away, Links
from yardmaster.engines.hosts.inventory import Host, Inventory
from yardmaster.engines.hosts.losses import Aftermath
from yardmaster.engines.hosts.placing import Task, placed
from yardmaster.engines.hosts.records import Placement, Records, Share
from yardmaster.engines.hosts.surveying import Surveyor, asked_of
from yardmaster.engines.supervision.facts import Order, key_to_json, task_name, task_of
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
                placement = Placement(key, spec, access, self._claimed(spec, key, spec.tasks(), frozenset()))
                self._records.place(placement)
            self._make(placement, placement.shares)

    def start_again(self, key: JobKey, after: Callable[[Placement], Aftermath | None]) -> bool:
        """Start the tasks of lost machines on others, and with them those that cannot continue without. `after` says
        which, of a placement all of whose tasks have a machine. Interrupted anywhere, a repeated call finishes it.
        Raises `Unavailable` where there is no place now: then they wait."""
        with self._records.locked(key):
            placement = self._records.placement(key)
            if placement is None or placement.left is not None:
                return False
            if not placement.unplaced():
                found = after(placement)
                if found is None or not found.starts_again:
                    return False
                placement = withdrawn(placement, found)
                self._records.place(placement)
            placement = self._without_old_parts(placement)
            tasks = placement.unplaced()
            shares = self._claimed(placement.spec, key, tasks, frozenset({*placement.gone, *placement.shares}))
            placement = replace(placement, shares={**placement.shares, **shares})
            self._records.place(placement)
            self._make(placement, shares)
            return True

    def clean_up(self, key: JobKey) -> None:
        """See `HostsEngine.clean_up`."""
        with self._records.locked(key):
            placement = self._records.placement(key)
            if placement is not None:
                self._remove(placement)

    def finish_removals(self) -> None:
        """Remove what is left on machines that did not answer when it was to be removed."""
        for one in self._records.placements():
            if one.left is not None or one.gone:
                with self._records.locked(one.key):
                    again = self._records.placement(one.key)
                    if again is not None and again.left is not None:
                        self._remove(again)
                    elif again is not None and again.gone:
                        self._without_old_parts(again)

    # --- beginning ---------------------------------------------------------------------------------------------------

    def _claimed(
        self, spec: TrainingSpec, key: JobKey, tasks: Collection[Task], without: frozenset[str]
    ) -> dict[str, Share]:
        """Choose machines for these tasks, and have each promise its part. Raises `Unavailable`, and then nothing is
        promised."""
        surveys = {one.host.name: one for one in self._surveyor.survey()}
        free = {name: one.left for name, one in surveys.items() if one.left.cpu > 0 and name not in without}
        chosen = placed(spec, free, tasks)
        if chosen is None:
            away = [one.error.message for one in surveys.values() if one.error is not None]
            raise Unavailable(
                " ".join(["No machines have the space for all tasks now.", *away]),
                remedy="It is tried again, until machines are free or back.",
            )
        hosts = {name: surveys[name].host for name in chosen}
        calls = {name: (hosts[name], "claim", self._wish(spec, key, hosts[name], chosen[name])) for name in chosen}
        answers = self._links.call_all(calls)
        errors = [one for one in answers.values() if isinstance(one, YardmasterError)]
        if errors:
            made = [name for name, one in answers.items() if not isinstance(one, YardmasterError)]
            self._links.call_all({name: (hosts[name], "unclaim", {"key": key_to_json(key)}) for name in made})
            raise Unavailable(errors[0].message, remedy=errors[0].remedy)
        return {
            name: Share(
                hosts[name].address,
                tuple(task_name(*task) for task in chosen[name]),
                {task: int(port) for task, port in answer["ports"].items()},
                {task: tuple(cards) for task, cards in answer["gpus"].items()},
            )
            for name, answer in answers.items()
        }

    def _wish(self, spec: TrainingSpec, key: JobKey, host: Host, tasks: list[Task]) -> dict[str, Any]:
        return {
            **asked_of(host),
            "key": key_to_json(key),
            "tasks": {task_name(*task): amounts_of(spec.roles[task[0]].resources) for task in tasks},
            "with_ports": [task_name(*task) for task in tasks if task[0] in server_roles(spec)],
        }

    def _make(self, placement: Placement, shares: Mapping[str, Share]) -> None:
        """These machines' parts. Where one cannot make it as it was promised, nothing is left anywhere."""
        hosts, calls = self._inventory.hosts(), {}
        for name, share in shares.items():
            if name not in hosts:
                self._remove(placement)
                raise Unavailable(f"The machine {name} is not in the list of machines any more.")
            calls[name] = (hosts[name], "submit", self._part(placement, name, share, hosts[name]))
        answers = self._links.call_all(calls)
        errors = [one for one in answers.values() if isinstance(one, YardmasterError)]
        for error in errors:
            if not isinstance(error, Away):  # what was promised is not to be had
                self._remove(placement)
                raise error
        if errors:
            raise errors[0]

    def _part(self, placement: Placement, name: str, share: Share, host: Host) -> dict[str, Any]:
        """What a machine is told of its part of a run."""
        order = Order(
            placement.key,
            placement.spec,
            placement.access.portal_url,
            tuple(self._options["command"]),
            self._options["environment"],
            share.gpus,
            share.ports,
            host=share.host,
            elsewhere=placement.elsewhere(name),
            owner=self._owner,
        )
        return {
            "order": order.to_json(),
            "token": placement.access.token,
            "python": host.task_python,
            "open_servers": self._options["open_servers"],
            "facts": {
                task: placement.facts[task_of(task)].to_json()
                for task in share.tasks
                if task_of(task) in placement.facts
            },
        }

    # --- removing ----------------------------------------------------------------------------------------------------

    def _remove(self, placement: Placement) -> None:
        """From every machine that still has something of it. First it is written down that it is no more."""
        left = placement.left
        if left is None:
            left = tuple(dict.fromkeys([*placement.shares, *placement.gone]))
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

    def _without_old_parts(self, placement: Placement) -> Placement:
        """Remove what machines have of the run as it was. Those that do not answer do so when they are back."""
        hosts, key = self._inventory.hosts(), {"key": key_to_json(placement.key)}
        asked = {name: (hosts[name], "clean_up", key) for name in placement.gone if name in hosts}
        answers = self._links.call_all(asked)
        failed = {name: one for name, one in answers.items() if isinstance(one, YardmasterError)}
        for error in failed.values():
            if not isinstance(error, Away) and error.retryable:
                raise error
        after = replace(placement, gone=tuple(failed))
        if after != placement:
            self._records.place(after)
        return after


def withdrawn(placement: Placement, after: Aftermath) -> Placement:
    """The same without the parts of machines that have a task that starts again. Pure."""
    leaving = {
        name
        for name, share in placement.shares.items()
        if any(task_of(one) in after.starts_again for one in share.tasks)
    }
    parts = [placement.shares[name] for name in leaving]
    facts = {task_of(one): after.facts[task_of(one)] for share in parts for one in share.tasks}
    ended = {
        one: share.address(one) for share in parts for one in share.tasks if task_of(one) not in after.starts_again
    }
    return replace(
        placement,
        shares={name: share for name, share in placement.shares.items() if name not in leaving},
        facts={**placement.facts, **facts},
        former={**placement.former, **ended},
        gone=tuple(dict.fromkeys([*placement.gone, *leaving])),
        pending={name: one for name, one in placement.pending.items() if name not in leaving},
    )
