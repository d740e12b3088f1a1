"""May this job start now? The whole job or nothing, against its namespace's quota and its engine's capacity.

Pure. `admit` answers for one job; `queue_decision` decides a whole queue by the same rules.

The order is that of `order`: priority, as far as it counts, then first come, or who has the least share. A job that is
before and could start now gets its capacity first. A waiting job that does not fit yet may be passed by smaller ones,
but not for ever: once it has waited longer than `patience`, no later job may take from a pool (its namespace's quota,
the engine) a resource that it lacks there. What it does not lack is left to others, and while it lacks some of its own
namespace's quota it keeps nothing of the engine: a job that waits for that quota holds up no other namespace. A job
that would find enough in sum and not on single nodes (`placement`) lacks all that it needs of the engine.

Not here: which node a task gets (the engine's matter), and what a too large job could be instead (`fitting`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from yardmaster.queueing.bars import static_bars
from yardmaster.queueing.decision import MOST_SHOWN, Decision, Fit
from yardmaster.queueing.ledger import (
    ENGINE,
    RUNNING_JOBS,
    Candidate,
    Code,
    EngineCapacity,
    Holder,
    Ledger,
    Quota,
    Usage,
)
from yardmaster.queueing.order import Order, Place
from yardmaster.queueing.pinning import never_pinned, with_machines
from yardmaster.queueing.placement import Tasks
from yardmaster.queueing.pools import (
    CAPACITY,
    MACHINE,
    NODES,
    QUOTA,
    RESERVED,
    TASKS,
    Needs,
    PoolKey,
    Pools,
    Shortage,
    exceeding,
    quota_limits,
)
from yardmaster.queueing.resources import units_of
from yardmaster.queueing.shares import ShareOf
from yardmaster.queueing.windows import Booked, Kept
from yardmaster.queueing.wording import listed, waiting_message

__all__ = [
    "DEFAULT_PATIENCE",
    "MOST_SHOWN",
    "RUNNING_JOBS",
    "STARTS",
    "Candidate",
    "Code",
    "Decision",
    "EngineCapacity",
    "Fit",
    "Holder",
    "Ledger",
    "Quota",
    "Shortage",
    "Usage",
    "admit",
    "held_keys",
    "hindrance",
    "keeps_for",
    "never_fits",
    "waiting",
    "with_claim",
    "with_machines",
    "with_share",
    "with_window",
]

DEFAULT_PATIENCE = timedelta(minutes=10)
_PRECEDENCE = list(Code)
_OF_TURNS = (Code.WAITING_FOR_TURN, Code.WAITING_FOR_CAPACITY)

STARTS = Decision(Fit.FITS_NOW)


def admit(
    candidate: Candidate,
    queue: Iterable[Candidate],
    ledger: Ledger,
    now: datetime,
    patience: timedelta = DEFAULT_PATIENCE,
) -> Decision:
    """Whether the candidate starts now.

    `queue` is every job that waits for the same engine and is still wanted, in any order, with or without the
    candidate itself. Asking changes nothing.
    """
    return answer(candidate, Line(candidate, queue, ledger, now, patience), ledger)


def answer(candidate: Candidate, line: Line, ledger: Ledger) -> Decision:
    """What `admit` says, from a line that is known already."""
    position = len(line.before)
    hindered = hindrance(candidate, ledger, position)
    if hindered is not None:
        return hindered
    needs = line.pools.needs(candidate)
    lacking = line.lacking(needs)
    if not lacking:
        return STARTS
    ahead = [one.job_id for one, theirs in line.before if not lacking.isdisjoint(theirs.keys())]
    holders = [one for one in ledger.holders if not lacking.isdisjoint(held_keys(one))]
    # What would lack if no job were before: that is the reason, and the queue only adds to it.
    alone = Pools(ledger).shortages(needs)
    numbers = alone or line.pools.shortages(needs)
    decision = waiting(alone, numbers, position, ahead[:MOST_SHOWN], len(ahead), holders[:MOST_SHOWN])
    others = sum(one.namespace_id != candidate.namespace_id for one, _ in line.before)
    decision = with_window(decision, line.pools.kept_from(needs), ledger.booked)
    decision = with_share(decision, line.share_of(candidate.namespace_id), others)
    decision = with_claim(decision, ledger.claimants.get(candidate.job_id, 0))
    return with_machines(decision, candidate, ledger)


def hindrance(candidate: Candidate, ledger: Ledger, position: int) -> Decision | None:
    """Why the candidate may not start whatever is free, the first reason in Kueue's order; None where it may."""
    closed, never = _closed(candidate, ledger, position), never_fits(candidate, ledger)
    if closed is None or never is None:
        return closed or never
    return min(closed, never, key=lambda one: _PRECEDENCE.index(one.code or Code.PENDING_EVALUATION))


def never_fits(candidate: Candidate, ledger: Ledger) -> Decision | None:
    """Why it can never start as limits and machines are now, or None. What is used does not matter."""
    is_pinned = candidate.only is not None
    pinned = never_pinned(candidate, ledger.capacity)
    if pinned is not None:
        return pinned
    for one in () if is_pinned else candidate.tasks:
        over = _too_large(one, ledger.capacity)
        if over:
            message = f"A task does not fit on any node: {listed(over)}."
            return _never(Code.NO_MATCHING_FLAVOR, message, "Request more, smaller tasks.", over)
    needs = {**units_of(candidate.total), RUNNING_JOBS: 1}
    limits = quota_limits(ledger, candidate.namespace_id, needs)
    over = exceeding(QUOTA, {name: need for name, need in needs.items() if name in limits}, limits)
    if over:
        message = f"The job exceeds its namespace's quota: {listed(over)}."
        remedy = "Request less, or ask an administrator for more quota."
        return _never(Code.EXCEEDS_MAX_QUOTA, message, remedy, over)
    over = exceeding(CAPACITY, units_of(candidate.total), units_of(ledger.capacity.total))
    if over:
        message = f"The job exceeds the engine's total capacity: {listed(over)}."
        return _never(Code.EXCEEDS_CAPACITY, message, "Request less, or choose a larger engine.", over)
    if ledger.capacity.nodes and not is_pinned and not ledger.capacity.idle.fits(candidate.tasks):
        asked, most = sum(one.count for one in candidate.tasks), ledger.capacity.idle.most(candidate.tasks)
        message = f"Even with nothing else running, the machines take {most} of its {asked} tasks at once."
        remedy = "Request fewer or smaller tasks, or choose a larger engine."
        return _never(Code.EXCEEDS_CAPACITY, message, remedy, (Shortage(NODES, TASKS, asked, most, most),))
    return None


def _never(code: Code, message: str, remedy: str, numbers: tuple[Shortage, ...]) -> Decision:
    return Decision(Fit.NEVER_FITS, code, message, remedy, numbers)


def _too_large(one: Tasks, capacity: EngineCapacity) -> tuple[Shortage, ...]:
    """What a task of this size asks for beyond the machine that comes closest; nothing where one takes it."""
    if not capacity.nodes:
        return exceeding(MACHINE, units_of(one.size), units_of(capacity.largest_task))
    if capacity.idle.fits((replace(one, count=1),)):
        return ()
    asked = units_of(one.size)
    takers = [node for node in capacity.nodes if node.takes is None or one.kind in node.takes]
    found = [exceeding(MACHINE, asked, units_of(node.total)) for node in takers]
    nothing = exceeding(MACHINE, asked, {})
    return min(found, key=lambda over: sum(each.short_by / each.needs for each in over), default=nothing)


class Line:
    """Who is before a candidate, what they leave of the pools, and what they keep others from taking."""

    def __init__(
        self, candidate: Candidate, queue: Iterable[Candidate], ledger: Ledger, now: datetime, patience: timedelta
    ) -> None:
        self.pools = Pools(ledger)
        self._barred = static_bars(self.pools)
        """What later jobs may not take: a job before lacks it and has waited long enough."""
        self._kept = static_bars(self.pools)
        """What later jobs that borrow may not take: a job before lacks it and is guaranteed it."""
        self.before: list[tuple[Candidate, Needs]] = []
        others = [one for one in queue if one.job_id != candidate.job_id]
        order = Order([*others, candidate], ledger, self.pools)
        self.share_of = order.share_of
        self._borrows = True
        for place in order:
            one = place.turn.candidate
            if one is candidate:
                self._borrows = place.borrows
                break
            needs = self.pools.needs(one)
            if not self.pools.could_ever_hold(needs):  # one that never starts is ahead of no job
                continue
            self.before.append((one, needs))
            if _closing(one, ledger) is None:
                self._pass(order, place, needs, keeps_for(one, ledger, now, patience))

    def lacking(self, needs: Needs) -> frozenset[PoolKey]:
        """What the candidate, if it needs this, lacks or may not take."""
        return self.pools.lacking(needs) or self._forbidden(needs, self._borrows)

    def _forbidden(self, needs: Needs, borrows: bool) -> frozenset[PoolKey]:
        return self._barred.among(needs) | (self._kept.among(needs) if borrows else frozenset())

    def _pass(self, order: Order, place: Place, needs: Needs, keeps: bool) -> None:
        lacking = self.pools.lacking(needs)
        starts = not lacking and not self._forbidden(needs, place.borrows)
        order.count(place, needs, starts=starts)
        if starts:
            self.pools.take(needs)
        kept = self.pools.kept_for(needs) if lacking else lacking
        for bars, applies in ((self._barred, keeps), (self._kept, not place.borrows)):
            if applies:
                bars.add(needs, kept)


_CLOSED = {
    Code.DEACTIVATED: "is deactivated",
    Code.MISCONFIGURED: "is not set up correctly; an administrator must correct it",
    Code.SUSPENDED: "is suspended by an administrator and starts no jobs",
    Code.ADMISSION_GATED: "starts jobs only after approval",
    Code.HELD: "is held by an administrator and does not start",
    Code.BUDGET_SPENT: "has used up its budget of this month and starts no jobs until the next",
}


def _closing(candidate: Candidate, ledger: Ledger) -> tuple[Code, str, uuid.UUID | str] | None:
    """What keeps the candidate from starting, whatever is free: the first reason, who it is about, and their key."""
    found: list[tuple[Code | None, str, uuid.UUID | str]] = [
        (ledger.engine_closed, "The engine", ENGINE),
        (ledger.closed.get(candidate.namespace_id), "The namespace", candidate.namespace_id),
        (Code.HELD if candidate.job_id in ledger.held_jobs else None, "The job", candidate.job_id),
    ]
    closing = [(code, who, key) for code, who, key in found if code is not None]
    return min(closing, key=lambda one: _PRECEDENCE.index(one[0]), default=None)


def _closed(candidate: Candidate, ledger: Ledger, position: int) -> Decision | None:
    closing = _closing(candidate, ledger)
    if closing is None:
        return None
    code, who, key = closing
    reason = ledger.reasons.get(key, "")
    message = f"{who} {_CLOSED.get(code, 'does not start jobs at the moment')}" + (f": {reason}" if reason else ".")
    return Decision(Fit.WAITS, code, message, position=position)


def waiting(
    alone: Sequence[Shortage],
    numbers: tuple[Shortage, ...],
    position: int,
    ahead: Iterable[uuid.UUID],
    ahead_count: int,
    holders: Iterable[Holder],
) -> Decision:
    """The answer to a job that waits. `alone`: what would lack if no job were before it."""
    if not alone:
        code = Code.WAITING_FOR_TURN
    elif any(one.pool == RESERVED for one in alone):
        code = Code.RESERVED
    elif any(one.pool == QUOTA for one in alone):
        code = Code.WAITING_FOR_QUOTA
    else:
        code = Code.WAITING_FOR_CAPACITY
    message = waiting_message(code, numbers, ahead_count)
    return Decision(Fit.WAITS, code, message, "", numbers, position, tuple(ahead), ahead_count, tuple(holders))


def with_share(decision: Decision, share: ShareOf | None, others: int) -> Decision:
    """The same, and why jobs of others are before it, where that is for what its namespace has already. `others`: how
    many jobs of other namespaces are before it."""
    if share is None or share.used <= share.fair or not others or decision.code not in _OF_TURNS:
        return decision
    whose = f"The group {share.group} of your namespace" if share.group else "Your namespace"
    before = f"{others} job{' of others is' if others == 1 else 's of others are'} before it."
    words = f"{whose} uses {share.used:.0%} of the engine, its share is {share.fair:.0%}: {before}"
    return replace(decision, message=f"{decision.message} {words}", share=share)


def with_window(decision: Decision, kept: Kept | None, booked: Booked | None) -> Decision:
    """The words for a job that waits for the end of a window of others."""
    if decision.code is not Code.RESERVED or kept is None or booked is None:
        return decision
    window, numbers = kept.window, listed(decision.numbers)
    begins, ends = (f"{one:%Y-%m-%d %H:%M}" for one in (window.begins, window.ends))
    message = f"Reserved for {window.name} from {begins} to {ends} UTC: {numbers}."
    if window.begins <= booked.now:
        return replace(decision, message=message, remedy=f"Wait until {ends} UTC, or request less.")
    message += f" The job could still run then{kept.until_words}."
    limit = f"Set a time limit that ends before {begins} UTC{booked.start_words}"
    remedy = f"{limit}, request less, or wait until {ends} UTC."
    return replace(decision, message=message, remedy=remedy)


def with_claim(decision: Decision, going: int) -> Decision:
    """The same, and that so many jobs are giving up their places for it."""
    if not going or decision.code not in _OF_TURNS:
        return decision
    who = "1 running job gives up its place" if going == 1 else f"{going} running jobs give up their places"
    words = f"{who} for it: it starts when they have saved their checkpoints and ended."
    return replace(decision, message=f"{decision.message} {words}")


def keeps_for(one: Candidate, ledger: Ledger, now: datetime, patience: timedelta) -> bool:
    """Whether no later job may take what the candidate lacks: it has waited long, or others are making room for it."""
    return now - one.queued_at > patience or one.job_id in ledger.claimants


def held_keys(holder: Holder) -> frozenset[PoolKey]:
    """What of which pools an admitted job holds."""
    names = [name for name, amount in units_of(holder.resources).items() if amount > 0]
    mine = [PoolKey(holder.namespace_id, name) for name in (*names, RUNNING_JOBS)]
    return frozenset([*mine, *(PoolKey(None, name) for name in names)] if holder.on_engine else mine)
