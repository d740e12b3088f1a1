"""In which order a queue is served: whose turn is before whose.

Every job brings a turn: the time at which it was queued. Between namespaces a job counts with its priority up to the
ceiling of its namespace, then by its turn. Above the ceiling a priority counts within the namespace only: the jobs
there share their turns out among themselves, the highest priority first, so that no job of another namespace is passed.
A job that starts with another's turn leaves it its own: a turn is used once, so that a job which cannot start yet does
not lend an early turn to every later one. Jobs that can never start lend theirs to none. A priority that a class gave
counts between namespaces in full, and such a job shares its turn with no other.

Not here: who may start when it is its turn (`admission`).
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from yardmaster.queueing.ledger import Candidate, Ledger, Quota
from yardmaster.queueing.pools import Pools


class Turn(NamedTuple):
    """A candidate's place in the order. `brought_by`: the job whose turn it is, its own or another of its namespace."""

    candidate: Candidate
    brought_by: uuid.UUID


def ceiling_of(ledger: Ledger, namespace_id: uuid.UUID) -> int:
    """The highest priority that counts between namespaces."""
    return ledger.quotas.get(namespace_id, Quota()).priority_ceiling


def level_of(ledger: Ledger, one: Candidate) -> int:
    """The priority with which the job counts between namespaces."""
    return one.priority if one.is_granted else min(one.priority, ceiling_of(ledger, one.namespace_id))


def in_order(queue: Iterable[Candidate], ledger: Ledger, pools: Pools) -> list[Turn]:
    """The queue, first first. Any order of `queue` gives the same."""

    def place(one: Candidate) -> tuple[int, datetime, uuid.UUID]:
        """Ids are made in order of time and settle the rest."""
        return -level_of(ledger, one), one.turn_at or one.queued_at, one.job_id

    places = sorted(queue, key=place)
    found = [Turn(one, one.job_id) for one in places]
    for shared in _shared(places, ledger, pools):
        jobs = sorted(
            (places[at] for at in shared),
            key=lambda one: (-one.priority, one.place_at or one.queued_at, one.job_id),
        )
        for at, one in zip(shared, jobs, strict=True):
            found[at] = Turn(one, places[at].job_id)
    return found


def _shared(places: list[Candidate], ledger: Ledger, pools: Pools) -> Iterator[list[int]]:
    """The places that one namespace's jobs share out: of those that count equally between namespaces and not within,
    also when the one that counted more has started and left another its turn."""
    at_ceiling: defaultdict[uuid.UUID, list[int]] = defaultdict(list)
    sharing: set[uuid.UUID] = set()
    for at, one in enumerate(places):
        ceiling = ceiling_of(ledger, one.namespace_id)
        if one.priority >= ceiling and not one.is_granted:
            at_ceiling[one.namespace_id].append(at)
            if one.priority > ceiling or one.turn_at is not None:
                sharing.add(one.namespace_id)
    for namespace_id in sharing:
        group = at_ceiling[namespace_id]
        yield [at for at in group if pools.could_ever_hold(pools.needs(places[at]))]


class Exchange:
    """Who has whose turn, while jobs start one after the other."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._turn_at = {one.job_id: one.turn_at or one.queued_at for one, _ in turns}
        self._brought_by: dict[uuid.UUID, uuid.UUID] = {}
        """Whose turn a job has, and `_held_by` who has the job's: only where it is another's."""
        self._held_by: dict[uuid.UUID, uuid.UUID] = {}

    def use(self, turn: Turn) -> None:
        """The candidate starts with this turn; the job that had it gets the candidate's."""
        mine, theirs = turn.candidate.job_id, turn.brought_by
        holder, own = self._held_by.get(theirs, theirs), self._brought_by.get(mine, mine)
        if holder != mine:
            self._give(own, holder)
            self._give(theirs, mine)

    def moved(self) -> dict[uuid.UUID, datetime]:
        """The new turn of every job that has another's."""
        return {job: self._turn_at[by] for job, by in self._brought_by.items() if by != job}

    def _give(self, turn: uuid.UUID, job: uuid.UUID) -> None:
        self._brought_by[job], self._held_by[turn] = turn, job
