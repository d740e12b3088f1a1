"""How a run begins on several machines, and how it is removed from all of them.

It begins in three steps, each of which may be interrupted: every machine promises what its tasks need (claims); the
portal writes down where the run is (placement); every machine makes its part. A call that finds a placement does the
third step again. One that failed before that leaves claims, which end with the connection that made them.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from yardmaster.engines.base import TaskAccess
from yardmaster.engines.hosts import spark
from yardmaster.engines.hosts.claims import amounts_of
from yardmaster.engines.hosts.connection import Away, Links
from yardmaster.engines.hosts.environment import INSTALL_SPARK
from yardmaster.engines.hosts.homes import Homes
from yardmaster.engines.hosts.inventory import Host, Inventory, Listed
from yardmaster.engines.hosts.losses import Aftermath
from yardmaster.engines.hosts.placing import Task, placed
from yardmaster.engines.hosts.records import Placement, Records, Share
from yardmaster.engines.hosts.surveying import Surveyor, asked_of
from yardmaster.engines.supervision.facts import Order, key_to_json, task_name, task_of
from yardmaster.errors import Unavailable, YardmasterError
from yardmaster.ids import JobKey
from yardmaster.job.spec import Resources, Strategy, TrainingSpec
from yardmaster.job.strategy import server_roles
from yardmaster.quantity import some_of


class Submitter:
    """`options`: what the engine's settings say of all tasks."""

    def __init__(
        self,
        inventory: Inventory | Listed,
        links: Links,
        records: Records,
        surveyor: Surveyor,
        homes: Homes,
        owner: str,
        options: Mapping[str, Any],
    ) -> None:
        self._inventory, self._links, self._records, self._owner = inventory, links, records, owner
        self._surveyor, self._homes, self._options = surveyor, homes, options

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        """See `HostsEngine.submit`."""
        with self._records.locked(key):
            placement = self._records.placement(key)
            if placement is not None and placement.left is not None:
                self._remove(placement)
                raise Unavailable(f"The remains of an earlier run of {key.name} are being removed.")
            if placement is None:
                shares = self._claimed(spec, key, spec.tasks(), self._free(spec, key))
                self._homes.take(spec, key, shares)
                placement = Placement(key, spec, access, shares, unmade=tuple(shares))
                self._records.place(placement)
            if not placement.was_moved:
                self._make(placement, tuple(placement.shares))

    def start_again(self, key: JobKey, after: Callable[[Placement], Aftermath]) -> bool:
        """Start the tasks of lost machines on others, and with them those that cannot continue without. `after` says
        which, of a placement all of whose tasks have a machine. Interrupted anywhere, a repeated call finishes it.
        Raises `Unavailable` where there is no place now: nothing changes then."""
        with self._records.locked(key):
            placement = self._records.placement(key)
            if placement is None or placement.left is not None:
                return False
            if not placement.unplaced() and not (placement.was_moved and placement.unmade):
                found = after(placement)
                if not found.starts_again:
                    return False
                after_it = withdrawn(placement, found)
                self._see_that_there_is_space(placement, after_it)
                self._records.place(after_it)
                placement = after_it
            if placement.unplaced():
                placement = self._placed_again(self._without_old_parts(placement))
            try:
                self._make(placement, placement.unmade)
            except Away:
                raise
            except YardmasterError:
                # What was promised is not to be had: other machines, then.
                self._records.place(without_parts(placement, placement.unmade))
                raise
            return True

    def clean_up(self, key: JobKey) -> None:
        """See `HostsEngine.clean_up`."""
        with self._records.locked(key):
            placement = self._records.placement(key)
            if placement is not None:
                self._remove(placement)

    def finish_removals(self) -> None:
        """Remove what is left on machines that did not answer when it was to be removed, and answer now."""
        hosts = self._inventory.hosts()
        for one in self._records.placements():
            waiting = {**(one.left or {}), **one.gone}
            if any(name in hosts and self._links.is_connected(name) for name in waiting):
                with contextlib.suppress(Unavailable), self._records.locked(one.key):
                    again = self._records.placement(one.key)
                    if again is not None and again.left is not None:
                        self._remove(again)
                    elif again is not None and again.gone:
                        self._without_old_parts(again)

    # --- beginning ---------------------------------------------------------------------------------------------------

    def _free(self, spec: TrainingSpec, key: JobKey, without: Collection[str] = ()) -> dict[str, Resources]:
        """What machines that may run it have left, without these."""
        surveys = spark.able(spec, self._homes.able(spec, key, self._surveyor.survey()))
        return {one.host.name: one.left for one in surveys if one.left.cpu > 0 and one.host.name not in without}

    def _see_that_there_is_space(self, before: Placement, after: Placement) -> None:
        """Raise `Unavailable` where the tasks that start again would have no place once the old parts are removed."""
        free = self._free(after.spec, after.key, {*before.gone, *after.shares})
        for name in set(after.gone) & set(free):
            held = [before.spec.roles[task_of(task)[0]].resources for task in before.shares[name].tasks]
            free[name] = sum(held, free[name])
        self._chosen(after.spec, after.unplaced(), free)

    def _placed_again(self, placement: Placement) -> Placement:
        free = self._free(placement.spec, placement.key, {*placement.gone, *placement.shares})
        shares = self._claimed(placement.spec, placement.key, placement.unplaced(), free)
        after = replace(placement, shares={**placement.shares, **shares}, unmade=tuple(shares))
        self._records.place(after)
        return after

    def _chosen(
        self, spec: TrainingSpec, tasks: Collection[Task], free: Mapping[str, Resources]
    ) -> dict[str, list[Task]]:
        groups = self._of_one_path(free) if spec.strategy is Strategy.IN_GRAPH else [free]
        chosen = next((found for one in groups if (found := placed(spec, one, tasks)) is not None), None)
        if chosen is None:
            raise self._no_space(spec)
        return chosen

    def _no_space(self, spec: TrainingSpec) -> Unavailable:
        known = {name: self._records.machine(name) for name in self._inventory.hosts()}
        words = "No machines have the space for all tasks now."
        remedy = "It is tried again, until machines are free or back."
        if without := spark.left_out(spec, known):
            words = f"{words} Spark is not installed on {some_of(without)}, which take no task of this job."
            remedy = f"{remedy} {INSTALL_SPARK}"
        return Unavailable(words, remedy=remedy)

    def _of_one_path(self, free: Mapping[str, Resources]) -> list[dict[str, Resources]]:
        """One graph runs on all tasks of such a job and reads its data by one path: machines by their folder."""
        groups: dict[str, dict[str, Resources]] = {}
        for name, one in free.items():
            groups.setdefault(str(self._records.machine(name).get("folder", name)), {})[name] = one
        return list(groups.values())

    def _claimed(
        self, spec: TrainingSpec, key: JobKey, tasks: Collection[Task], free: Mapping[str, Resources]
    ) -> dict[str, Share]:
        """Choose machines for these tasks, and have each promise its part. Raises `Unavailable`, and then nothing is
        promised."""
        chosen, listed = self._chosen(spec, tasks, free), self._inventory.hosts()
        hosts = {name: listed[name] for name in chosen if name in listed}
        calls = {name: (host, "claim", self._wish(spec, key, host, chosen[name])) for name, host in hosts.items()}
        answers = self._links.call_all(calls)
        try:
            errors = [one for one in answers.values() if isinstance(one, YardmasterError)]
            if errors or len(hosts) < len(chosen):
                raise errors[0] if errors else Unavailable("A machine was removed from the list in the meantime.")
            return {name: _share(hosts[name], chosen[name], answer) for name, answer in answers.items()}
        except (YardmasterError, KeyError, TypeError, ValueError, AttributeError) as error:
            self._links.call_all({name: (host, "unclaim", {"key": key_to_json(key)}) for name, host in hosts.items()})
            if isinstance(error, YardmasterError):
                raise Unavailable(error.message, remedy=error.remedy) from error
            raise Unavailable("A machine sent an invalid answer.") from error

    def _wish(self, spec: TrainingSpec, key: JobKey, host: Host, tasks: list[Task]) -> dict[str, Any]:
        return {
            **asked_of(host),
            "key": key_to_json(key),
            "tasks": {task_name(*task): amounts_of(spec.roles[task[0]].resources) for task in tasks},
            "with_ports": [task_name(*task) for task in tasks if task[0] in server_roles(spec)],
        }

    def _make(self, placement: Placement, names: Collection[str]) -> None:
        """These machines' parts. Raises what a machine answers that cannot make it, or `Away`."""
        hosts = self._inventory.hosts()
        unlisted = [name for name in names if name not in hosts]
        if unlisted:
            raise Away(f"The machine {unlisted[0]} is no longer in the list of machines.")
        calls = {name: (hosts[name], "submit", self._part(placement, name, hosts[name])) for name in names}
        answers = self._links.call_all(calls)
        errors = [one for one in answers.values() if isinstance(one, YardmasterError)]
        made = {name for name, one in answers.items() if not isinstance(one, YardmasterError)}
        if made & set(placement.unmade):
            self._records.place(replace(placement, unmade=tuple(set(placement.unmade) - made)))
        if made:
            self._homes.note_made(placement.spec, placement.key)
        for error in errors:
            if not isinstance(error, Away):
                if not placement.was_moved:  # nothing has begun anywhere that matters: it is placed again
                    self._remove(placement)
                raise error
        if errors:
            raise errors[0]

    def _part(self, placement: Placement, name: str, host: Host) -> dict[str, Any]:
        """What a machine is told of its part of a run."""
        share = placement.shares[name]
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
            part=share.part,
        )
        return {
            "order": order.to_json(),
            "token": placement.access.token,
            "python": host.task_python,
            "open_servers": self._options["open_servers"],
            "home_kept": self._homes.is_kept(placement.spec, placement.key),
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
            left = {**placement.gone, **{name: share.part for name, share in placement.shares.items()}}
            self._records.removing(placement, left)
        self._records.removing(placement, self._removed(placement.key, left))

    def _without_old_parts(self, placement: Placement) -> Placement:
        """Remove what machines have of the run as it was. Those that do not answer do so when they are back."""
        after = replace(placement, gone=self._removed(placement.key, placement.gone))
        if after != placement:
            self._records.place(after)
        return after

    def _removed(self, key: JobKey, parts: Mapping[str, str]) -> dict[str, str]:
        """Ask machines to remove these parts; returns those that are not gone yet: of machines that do not answer, or
        that are not in the list now."""
        hosts = self._inventory.hosts()
        asked = {
            name: (hosts[name], "clean_up", {"key": key_to_json(key), "part": part})
            for name, part in parts.items()
            if name in hosts
        }
        answers = self._links.call_all(asked)
        return {name: part for name, part in parts.items() if isinstance(answers.get(name, _AWAY), YardmasterError)}


_AWAY = Away("It is no longer in the list of machines.")


def _share(host: Host, tasks: Collection[Task], answer: Mapping[str, Any]) -> Share:
    """What a machine promised. Raises `KeyError`, `TypeError`, `ValueError` or `AttributeError` where that is less."""
    names = tuple(task_name(*task) for task in tasks)
    ports = {task: int(port) for task, port in answer["ports"].items()}
    if not set(ports) <= set(names) or not all(0 < port < 65_536 for port in ports.values()):
        raise ValueError("ports of other tasks")
    gpus = {task: tuple(str(card) for card in cards) for task, cards in answer["gpus"].items()}
    return Share(uuid.uuid4().hex, host.address, names, ports, gpus)


def withdrawn(placement: Placement, after: Aftermath) -> Placement:
    """The same without the parts of machines that have a task that starts again. Pure."""
    leaving = [
        name
        for name, share in placement.shares.items()
        if any(task_of(task) in after.starts_again for task in share.tasks)
    ]
    parts = [placement.shares[name] for name in leaving]
    facts = {task_of(task): after.facts[task_of(task)] for share in parts for task in share.tasks}
    ended = {
        task: share.address(task) for share in parts for task in share.tasks if task_of(task) not in after.starts_again
    }
    kept = replace(placement, facts={**placement.facts, **facts}, former={**placement.former, **ended})
    return without_parts(kept, leaving)


def without_parts(placement: Placement, names: Collection[str]) -> Placement:
    """The same without what these machines have of it, which they are to remove. Pure."""
    return replace(
        placement,
        shares={name: share for name, share in placement.shares.items() if name not in names},
        gone={**placement.gone, **{name: placement.shares[name].part for name in names}},
        unmade=tuple(name for name in placement.unmade if name not in names),
        pending={name: one for name, one in placement.pending.items() if name not in names},
    )
