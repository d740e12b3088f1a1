"""Asks the machines what has become of runs, and tells each what has come of the others.

What a machine said last is kept, for while it does not answer.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from yardmaster.engines.hosts.connection import Call, Links
from yardmaster.engines.hosts.inventory import Host, Inventory, Listed
from yardmaster.engines.hosts.losses import Aftermath, aftermath
from yardmaster.engines.hosts.records import Placement, Records
from yardmaster.engines.hosts.views import Report, facts_of, lost_tasks, observation, others_of, report_in
from yardmaster.engines.supervision.facts import NO_FACTS, key_to_json
from yardmaster.errors import Unavailable, YardmasterError
from yardmaster.ids import JobKey
from yardmaster.lifecycle.phases import ABSENT, Observation

_AT_ONCE = 100
"""Runs of which a machine is asked in one request."""


class Observer:
    """`lost_after`: how long a machine may be away before its tasks are lost."""

    def __init__(self, inventory: Inventory | Listed, links: Links, records: Records, lost_after: timedelta) -> None:
        self._inventory, self._links, self._records = inventory, links, records
        self._lost_after = lost_after

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        """See `HostsEngine.observe`."""
        hosts = self._inventory.hosts()
        placements = {key: self._records.placement(key) for key in keys}
        there = {key: one for key, one in placements.items() if one is not None and one.left is None}
        self._catch_up(there, hosts)
        reports = self._ask(there, hosts)
        found = dict.fromkeys(keys, ABSENT)
        for key, placement in there.items():
            is_nowhere = bool(placement.shares) and all(one.tasks is None for one in reports[key].values())
            if is_nowhere and not placement.was_moved:
                continue
            found[key] = observation(placement, reports[key], time.time(), self._patience(hosts))
        self._tell(there, reports, hosts)
        return found

    def after_losses(self, placement: Placement) -> Aftermath:
        """What follows the loss of machines that have been away for too long, as it is now."""
        hosts = self._inventory.hosts()
        reports = self._ask({placement.key: placement}, hosts)[placement.key]
        lost = lost_tasks(placement, reports, time.time(), self._patience(hosts))
        return aftermath(placement.spec, facts_of(placement, reports), lost, lost)

    def _patience(self, hosts: Mapping[str, Host]) -> timedelta:
        """Where none of several machines answers, it is the portal's own network that is down: none of them is lost."""
        is_cut_off = len(hosts) > 1 and not any(self._links.is_connected(name) for name in hosts)
        return timedelta.max if is_cut_off else self._lost_after

    # --- asking ------------------------------------------------------------------------------------------------------

    def _ask(
        self, placements: Mapping[JobKey, Placement], hosts: Mapping[str, Host]
    ) -> dict[JobKey, dict[str, Report]]:
        """What every machine says of each run that has a part there, or said last."""
        asked: defaultdict[str, list[JobKey]] = defaultdict(list)
        for key, placement in placements.items():
            for machine in placement.shares:
                asked[machine].append(key)
        batches = {
            (machine, at): keys[at : at + _AT_ONCE]
            for machine, keys in asked.items()
            for at in range(0, len(keys), _AT_ONCE)
        }
        calls: dict[tuple[str, int], Call] = {
            one: (hosts[one[0]], "observe", {"keys": [key_to_json(key) for key in keys]})
            for one, keys in batches.items()
            if one[0] in hosts
        }
        answers = self._links.call_all(calls)
        reports: dict[JobKey, dict[str, Report]] = {key: {} for key in placements}
        for (machine, at), keys in batches.items():
            answer = answers.get((machine, at), _UNLISTED)
            for key, report in zip(keys, self._reports(machine, keys, answer), strict=True):
                reports[key][machine] = report
        return reports

    def _reports(self, machine: str, keys: list[JobKey], answer: Any) -> list[Report]:
        """What a machine said of these runs. An answer that is none is as bad as none."""
        if not isinstance(answer, YardmasterError):
            try:
                pairs = list(zip(keys, answer, strict=True))
                found = [report_in(data, self._links.offset(machine)) for _, data in pairs]
            except NO_FACTS:
                answer = Unavailable(
                    f"{machine} sent an invalid answer.", remedy="Check whether its agent was changed."
                )
            else:
                self._records.note_machine(machine, away_since=None)
                for key, data in pairs:
                    self._remember(machine, key, data)
                return found
        is_away = not self._links.is_connected(machine)
        since = self._records.away_since(machine) if is_away else None
        return [self._last(machine, key, since, answer.message) for key in keys]

    def _remember(self, machine: str, key: JobKey, data: Any) -> None:
        """What it said of the run, for while it does not answer."""
        before = self._records.seen(key)
        if data is not None and before.get(machine) != data:
            self._records.note_seen(key, {**before, machine: data})

    def _last(self, machine: str, key: JobKey, away_since: float | None, why: str) -> Report:
        """What it said of the run before it stopped answering, or before it sent an invalid answer."""
        try:
            report = report_in(self._records.seen(key).get(machine, {"tasks": {}}), self._links.offset(machine))
        except NO_FACTS:
            report = Report({})
        return replace(report, away_since=away_since, why=why, message="" if away_since is not None else why)

    # --- telling -----------------------------------------------------------------------------------------------------

    def _catch_up(self, placements: Mapping[JobKey, Placement], hosts: Mapping[str, Host]) -> None:
        """Have machines that are back do what was asked for meanwhile."""
        calls: dict[tuple[JobKey, str, str], Call] = {
            (key, machine, verb): (hosts[machine], verb, {"key": key_to_json(key), **arguments})
            for key, placement in placements.items()
            for machine, verbs in placement.pending.items()
            for verb, arguments in verbs.items()
            if machine in hosts
        }
        for (key, machine, verb), answer in self._links.call_all(calls).items():
            if not isinstance(answer, YardmasterError):
                self._records.done(key, machine, {verb: placements[key].pending[machine][verb]})

    def _tell(
        self,
        placements: Mapping[JobKey, Placement],
        reports: Mapping[JobKey, Mapping[str, Report]],
        hosts: Mapping[str, Host],
    ) -> None:
        """A machine that does not get it now gets it with the next look: it says what it knows."""
        calls: dict[tuple[JobKey, str], Call] = {
            (key, machine): (hosts[machine], "tell", {"key": key_to_json(key), "others": news.to_json()})
            for key, placement in placements.items()
            for machine, news in others_of(placement, reports[key]).items()
            if machine in hosts
        }
        self._links.call_all(calls)


_UNLISTED = Unavailable("It is no longer in the list of machines.")
