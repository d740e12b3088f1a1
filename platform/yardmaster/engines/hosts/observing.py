"""Asks the machines what has become of runs, and tells each what has come of the others.

What a machine said last is kept, for while it does not answer. A run whose placement was lost is looked for on all.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any

from yardmaster.engines.hosts.connection import Links
from yardmaster.engines.hosts.inventory import Host, Inventory
from yardmaster.engines.hosts.losses import Aftermath, aftermath
from yardmaster.engines.hosts.records import Placement, Records, placement_of
from yardmaster.engines.hosts.views import Report, facts_of, lost_tasks, observation, others_of, report_in
from yardmaster.engines.supervision.facts import Order, Others, key_to_json
from yardmaster.errors import SpecUnreadable, Unavailable, YardmasterError
from yardmaster.ids import JobKey
from yardmaster.lifecycle.phases import ABSENT, Observation


class Observer:
    """`lost_after`: how long a machine may be away before its tasks are lost."""

    def __init__(self, inventory: Inventory, links: Links, records: Records, owner: str, lost_after: timedelta) -> None:
        self._inventory, self._links, self._records, self._owner = inventory, links, records, owner
        self._lost_after = lost_after
        self._told: dict[tuple[JobKey, str], Others] = {}

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        """See `HostsEngine.observe`."""
        hosts = self._inventory.hosts()
        placements = {key: self._records.placement(key) for key in keys}
        lost = [key for key, one in placements.items() if one is None]
        placements.update(self._find(lost, hosts))
        there = {key: one for key, one in placements.items() if one is not None and one.left is None}
        self._catch_up(there, hosts)
        reports = self._ask(there, hosts)
        found = dict.fromkeys(keys, ABSENT)
        for key, placement in there.items():
            if placement.shares and all(one.tasks is None for one in reports[key].values()):
                continue  # on no machine is anything of it
            self._tell(placement, reports[key], hosts)
            found[key] = observation(placement, reports[key], time.time(), self._lost_after)
        return found

    def after_losses(self, placement: Placement) -> Aftermath:
        """What follows the loss of machines that have been away for too long, as it is now."""
        reports = self._ask({placement.key: placement}, self._inventory.hosts())[placement.key]
        lost = lost_tasks(placement, reports, time.time(), self._lost_after)
        return aftermath(placement.spec, facts_of(placement, reports), lost, lost)

    # --- asking ------------------------------------------------------------------------------------------------------

    def _ask(
        self, placements: Mapping[JobKey, Placement], hosts: Mapping[str, Host]
    ) -> dict[JobKey, dict[str, Report]]:
        """What every machine says of each run that has a part there, or said last."""
        by_machine: defaultdict[str, list[JobKey]] = defaultdict(list)
        for key, placement in placements.items():
            for machine in placement.shares:
                by_machine[machine].append(key)
        answers = self._links.call_all(
            {
                machine: (hosts[machine], "observe", {"keys": [key_to_json(key) for key in some]})
                for machine, some in by_machine.items()
                if machine in hosts
            }
        )
        raw: dict[JobKey, dict[str, Any]] = {key: {} for key in placements}
        reports: dict[JobKey, dict[str, Report]] = {key: {} for key in placements}
        for machine, some in by_machine.items():
            answer = answers.get(machine, _UNLISTED)
            if isinstance(answer, YardmasterError):
                since = self._records.away_since(machine)
                for key in some:
                    last = self._records.seen(key).get(machine, {"tasks": {}})
                    before = report_in(last, self._links.offset(machine))
                    reports[key][machine] = Report(before.tasks, "", before.offset, since, answer.message)
                continue
            self._records.note_machine(machine, away_since=None)
            for key, data in zip(some, answer, strict=True):
                raw[key][machine] = data
                reports[key][machine] = report_in(data, self._links.offset(machine))
        for key, said in raw.items():
            known = {machine: data for machine, data in said.items() if data is not None}
            if known:
                self._records.note_seen(key, {**self._records.seen(key), **known})
        return reports

    def _find(self, keys: list[JobKey], hosts: Mapping[str, Host]) -> dict[JobKey, Placement | None]:
        """The placements of runs of which the portal knows none, as the machines' orders have them."""
        if not keys or not self._records.is_new():
            return {}
        asked = {"keys": [key_to_json(key) for key in keys]}
        answers = self._links.call_all({name: (host, "find", asked) for name, host in hosts.items()})
        answers = {name: one for name, one in answers.items() if not isinstance(one, YardmasterError)}
        found: dict[JobKey, Placement | None] = {}
        for number, key in enumerate(keys):
            said = {name: answer[number] for name, answer in answers.items() if answer[number]}
            orders = {name: _order_in(one["order"]) for name, one in said.items()}
            known = {name: one for name, one in orders.items() if one is not None and one.owner == self._owner}
            placement = placement_of(known, str(said[next(iter(known))]["token"])) if known else None
            if placement is not None:
                self._records.place(placement)
            found[key] = placement
        return found

    # --- telling -----------------------------------------------------------------------------------------------------

    def _catch_up(self, placements: Mapping[JobKey, Placement], hosts: Mapping[str, Host]) -> None:
        """Have machines that are back do what they were asked for meanwhile."""
        for key, placement in placements.items():
            for machine, verbs in placement.pending.items():
                answers = [
                    self._links.call_all({machine: (hosts[machine], verb, {"key": key_to_json(key), **arguments})})
                    for verb, arguments in verbs.items()
                    if machine in hosts
                ]
                if not any(isinstance(one[machine], YardmasterError) for one in answers):
                    self._records.done(key, machine, verbs)

    def _tell(self, placement: Placement, reports: Mapping[str, Report], hosts: Mapping[str, Host]) -> None:
        """A machine that does not hear it now is told with the next look."""
        calls: dict[str, tuple[Host, str, Mapping[str, Any]]] = {}
        for machine, others in others_of(placement, reports).items():
            is_new = self._told.get((placement.key, machine), Others()) != others
            if is_new and machine in hosts and reports[machine].away_since is None:
                calls[machine] = (
                    hosts[machine],
                    "tell",
                    {"key": key_to_json(placement.key), "others": others.to_json()},
                )
        for machine, answer in self._links.call_all(calls).items():
            if not isinstance(answer, YardmasterError):
                self._told[placement.key, machine] = Others.from_json(calls[machine][2]["others"])

    def forget(self, keys: Iterable[JobKey]) -> None:
        """Of runs that are no more."""
        gone = set(keys)
        self._told = {one: others for one, others in self._told.items() if one[0] not in gone}


_UNLISTED = Unavailable("It is not in the list of machines any more.")


def _order_in(data: Mapping[str, Any]) -> Order | None:
    try:
        return Order.from_json(data)
    except SpecUnreadable:
        return None
