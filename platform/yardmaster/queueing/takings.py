"""Which jobs of a queue take the places of which running ones, after a pass has decided who starts. Pure.

One that waits may take a place where its class may, or where it stays within a guarantee; and where it lacks something
of the engine, not its own namespace's quota. What jobs hold that are ending is counted as free: a pass that is repeated
takes no further job while the first ones are still ending. No one takes a place while a job before it wants the same
and gets nothing: it would get what becomes free.

Not here: which of the running jobs go (`preemption`), and ending them (`apps.jobs.worker.preempting`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.borrowing import is_within
from yardmaster.queueing.ledger import NEVER_FITS, Candidate, Code, Ledger, Usage
from yardmaster.queueing.pools import Needs, PoolKey, Pools
from yardmaster.queueing.preemption import Preemptor, Rules, Running, Taken, victims
from yardmaster.queueing.queue_decision import QueueDecision
from yardmaster.queueing.resources import Units, resources_of, units_of
from yardmaster.queueing.shares import Shares, Standing, shares_of
from yardmaster.queueing.turns import level_of

MOST_TAKING = 8
"""Jobs that take places in one pass: the next one follows soon."""
_WAITS = frozenset({Code.WAITING_FOR_CAPACITY, Code.WAITING_FOR_TURN})


@dataclass(frozen=True)
class Present:
    """What is known of the jobs on the engine and of those that wait, beside the ledger."""

    running: tuple[Running, ...] = ()
    ending: frozenset[uuid.UUID] = frozenset()
    """Jobs whose end is under way, and which still hold something."""
    by_priority: frozenset[uuid.UUID] = frozenset()
    """Waiting jobs whose class may take the places of lower ones."""
    resting: frozenset[uuid.UUID] = frozenset()
    """Waiting jobs for which something was taken a short while ago."""


@dataclass(frozen=True)
class Taking:
    """A job that waits, and who goes for it."""

    candidate: Candidate
    victims: tuple[Running, ...]
    is_guaranteed: bool
    """It takes back what is guaranteed to its namespace."""


def takings(
    found: QueueDecision,
    candidates: Mapping[uuid.UUID, Candidate],
    ledger: Ledger,
    present: Present,
    now: datetime,
    rules: Rules = Rules(),
) -> list[Taking]:
    """Who takes whose places, in the order of the queue. `found` is what the pass decided of `candidates`."""
    walk = _Walk(ledger, present, now, rules)
    for job_id, decision in found.decisions.items():
        if len(walk.takings) == MOST_TAKING:
            break
        if decision.code is None:
            walk.starts(candidates[job_id])
        elif decision.code in _WAITS and decision.code not in NEVER_FITS:
            walk.waits(candidates[job_id])
    return walk.takings


def may_take_any(candidates: Iterable[Candidate], ledger: Ledger, by_priority: Collection[uuid.UUID]) -> bool:
    """Whether any of these could take a place at all: else nothing more need be known."""
    has_guarantees = ledger.shares is not None and any(one.guaranteed for one in ledger.shares.members.values())
    return has_guarantees or any(one.job_id in by_priority for one in candidates)


@dataclass
class _Walk:
    ledger: Ledger
    present: Present
    now: datetime
    rules: Rules
    takings: list[Taking] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._gone = set(self.present.ending)
        self._promised: list[Needs] = []
        self._blocked: set[PoolKey] = set()
        self._begin()
        shares = self._left.shares
        self._standing = Standing(shares or Shares(), units_of(self.ledger.capacity.total))
        self._running = [one for one in self._weighed() if one.job_id not in self._gone]

    def _begin(self) -> None:
        self._left = without(self.ledger, self._gone)
        self._pools = _pools(self._left, self._promised)

    def _weighed(self) -> list[Running]:
        """With how far their namespaces are over their shares."""
        if self.ledger.shares is None:
            return list(self.present.running)
        whole = Standing(self.ledger.shares, units_of(self.ledger.capacity.total))
        known = shares_of(whole, {one.namespace_id for one in self.present.running})
        over = {key: share.used - share.fair for key, share in known.items()}
        return [replace(one, over=over.get(one.namespace_id, 0.0)) for one in self.present.running]

    def starts(self, one: Candidate) -> None:
        needs = self._pools.needs(one)
        self._promised.append(needs)
        self._pools.take(needs)
        self._standing.charge(one.namespace_id, units_of(one.total))

    def waits(self, one: Candidate) -> None:
        needs = self._pools.needs(one)
        lacking = self._pools.lacking(needs)
        if any(key.namespace_id is not None for key in lacking):
            return  # its own quota: it holds up no other
        if self._pools.waits_for_end(needs) or self._pools.waits_for_machines(needs):
            return  # a time that is reserved for others, or machines of its own: it holds up no other
        is_blocked = not self._blocked.isdisjoint(lacking or needs.keys())
        is_guaranteed = is_within(self._standing, one.namespace_id, units_of(one.total))
        if lacking and not is_blocked and self._may_take(one, is_guaranteed):
            lacking = self._take(one, needs, is_guaranteed)
        if lacking or is_blocked:
            self._blocked |= lacking
            self._standing.charge(one.namespace_id, units_of(one.total))
        else:
            self.starts(one)

    def _may_take(self, one: Candidate, is_guaranteed: bool) -> bool:
        return one.job_id not in self.present.resting and (is_guaranteed or one.job_id in self.present.by_priority)

    def _take(self, one: Candidate, needs: Needs, is_guaranteed: bool) -> frozenset[PoolKey]:
        """What it still lacks then."""
        asked = {key.resource: need for key, need in needs.units.items() if key.namespace_id is None}
        lacks = {name: need - self._pools.left(PoolKey(None, name)) for name, need in asked.items()}
        if not any(units > 0 for units in lacks.values()):
            lacks = asked  # enough in sum, and not on single nodes
        by_priority = one.job_id in self.present.by_priority
        preemptor = Preemptor(one.namespace_id, level_of(self.ledger, one), lacks, by_priority, is_guaranteed)
        found = victims(
            preemptor, self._running, self.now, self.rules, borrows=self._borrows, has_space=self._space_with(needs)
        )
        if found:
            self._remove(found)
            self.takings.append(Taking(one, tuple(found), is_guaranteed))
        return self._pools.lacking(needs)

    def _remove(self, found: Iterable[Running]) -> None:
        for each in found:
            self._gone.add(each.job_id)
            self._standing.charge(each.namespace_id, _negative(each.holds))
        self._running = [each for each in self._running if each.job_id not in self._gone]
        self._begin()

    def _borrows(self, one: Running, taken: Taken) -> bool:
        """As if those were gone, and it came only now."""
        gone = [*taken, one]
        for each in gone:
            self._standing.charge(each.namespace_id, _negative(each.holds))
        found = not is_within(self._standing, one.namespace_id, one.holds)
        for each in gone:
            self._standing.charge(each.namespace_id, each.holds)
        return found

    def _space_with(self, needs: Needs) -> Callable[[Taken], bool]:
        """On single nodes, and beside what is reserved; of one machine with nothing reserved the sums say it."""

        def has_space(taken: Taken) -> bool:
            gone = self._gone | {one.job_id for one in taken}
            return not _pools(without(self.ledger, gone), self._promised).lacking(needs)

        needs_look = self.ledger.capacity.nodes or self.ledger.booked is not None
        return has_space if needs_look else lambda taken: True


def _pools(ledger: Ledger, promised: Iterable[Needs]) -> Pools:
    pools = Pools(ledger)
    for one in promised:
        pools.take(one)
    return pools


def _negative(units: Units) -> Units:
    return {name: -amount for name, amount in units.items()}


def _less(amount: Resources, units: Units) -> Resources:
    left = units_of(amount)
    for name, taken in units.items():
        left[name] = left.get(name, 0) - taken
    return resources_of(left)


def without(ledger: Ledger, gone: Set[uuid.UUID]) -> Ledger:
    """The ledger as if these jobs held nothing any more. What they hold on other engines stays."""
    theirs = [one for one in ledger.holders if one.on_engine and one.job_id in gone]
    if not theirs:
        return ledger
    usage, held = dict(ledger.usage), dict(ledger.shares.held) if ledger.shares else {}
    amount = NOTHING
    for one in theirs:
        units, key = units_of(one.resources), one.namespace_id
        amount += one.resources
        if key in usage:
            usage[key] = Usage(_less(usage[key].resources, units), max(0, usage[key].running_jobs - 1))
        if key in held:
            held[key] = {name: held[key].get(name, 0) - units.get(name, 0) for name in {*held[key], *units}}
    return replace(
        ledger,
        capacity=replace(ledger.capacity, reserved=_less(ledger.capacity.reserved, units_of(amount))),
        usage=usage,
        holders=tuple(one for one in ledger.holders if not (one.on_engine and one.job_id in gone)),
        shares=None if ledger.shares is None else replace(ledger.shares, held=held),
    )
