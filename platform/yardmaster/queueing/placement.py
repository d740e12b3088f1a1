"""Whether a whole job fits on the nodes at once: bin packing of its tasks over what each node has free. Pure.

A sum does not tell: 2 + 2 free cores take two tasks of 1.2, and not three. A packing is looked for greedily first, the
largest tasks on the fullest nodes. Where that fails, a search decides: exactly for small cases, for large ones within
`packing.MOST_STEPS`. So a large job on many oddly filled nodes may wait although a packing exists. One that is let in
has one.

Which node a pod gets is the scheduler's decision. What it refuses goes back to the queue (`plan`).

All amounts are whole units, as in `resources`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import UUID

from yardmaster.job.spec import Resources, Role, TrainingSpec
from yardmaster.job.strategy import is_service
from yardmaster.queueing.packing import SERVICE, Group, Kind, Spaces, greedy, search
from yardmaster.queueing.resources import Units, asks_for_one, units_of


@dataclass(frozen=True, slots=True)
class Bound:
    """A task of the portal that is on a node already, and what it takes there."""

    job_id: UUID
    role: str
    resources: Resources


@dataclass(frozen=True)
class Node:
    """A node that takes tasks. `total` is what it has for jobs when nothing runs; `free` what others than the portal
    leave of it: the portal's own tasks, `bound`, are not subtracted. `takes`: tasks of which kinds; None: of all.
    `closed`: why it takes none now, in a word or two; empty where it takes some."""

    name: str
    total: Resources
    free: Resources
    bound: tuple[Bound, ...] = ()
    takes: frozenset[Kind] | None = None
    closed: str = ""

    @cached_property
    def in_all(self) -> Units:
        """`total` in units."""
        return units_of(self.total)

    def left_beside(self, holding: frozenset[UUID]) -> Units:
        """What is free in units, less what the bound tasks of these jobs take. Nearly always they are all of them."""
        if self._jobs <= holding:
            return self._left
        return self._without(one for one in self.bound if one.job_id in holding)

    @cached_property
    def _jobs(self) -> frozenset[UUID]:
        return frozenset(one.job_id for one in self.bound)

    @cached_property
    def _left(self) -> Units:
        return self._without(self.bound)

    def _without(self, bound: Iterable[Bound]) -> Units:
        left = units_of(self.free)
        for one in bound:
            for name, need in units_of(one.resources).items():
                left[name] = left.get(name, 0) - need
        return left


@dataclass(frozen=True)
class Only:
    """The nodes that may take tasks, by name, and what these have that others have not, in a word or two for people."""

    names: frozenset[str]
    why: str
    keeps: bool = False
    """Whether a job that waits for them keeps from later jobs what it lacks, as one that runs on any node does."""


@dataclass(frozen=True)
class Tasks:
    """So many equal tasks of a role. `role` is a stored name, which may be another release's."""

    role: str
    size: Resources
    count: int
    serves: bool = False
    """Whether they are a service's."""
    only: Only | None = None
    """Where they may run; None: on every node that takes them."""

    @property
    def kind(self) -> Kind:
        return SERVICE if self.serves else self.role, asks_for_one(self.size.as_amounts())


def tasks_of(spec: TrainingSpec, counts: Mapping[Role, int]) -> tuple[Tasks, ...]:
    """So many tasks of each of these roles of a job."""
    serves = is_service(spec.strategy)
    return tuple(Tasks(role.value, spec.roles[role].resources, count, serves) for role, count in counts.items())


class Board:
    """What is free on the nodes, while jobs are promised some of it. That only becomes less: what was refused once is
    refused from then on."""

    def __init__(self, nodes: Iterable[tuple[Units, frozenset[Kind] | None, str]]) -> None:
        found = list(nodes)
        self._names = sorted(set().union(*(left for left, *_ in found)))
        self._spaces: Spaces = {}
        for left, takes, called in found:
            # At the end stands what no node has: all that is asked for under another name.
            space = (*[left.get(name, 0) for name in self._names], 0), takes, called
            self._spaces[space] = self._spaces.get(space, 0) + 1
        self._refused: dict[tuple[Tasks, ...], int] = {}
        """How many of these tasks fit, where not all do."""
        self._accepted: dict[tuple[Tasks, ...], Spaces] = {}
        """What would be left beside these tasks."""

    @classmethod
    def idle(cls, nodes: Iterable[Node], by_name: Collection[str] = ()) -> Board:
        """As if nothing of anybody's ran but what runs on every node. `by_name`: the nodes that tasks may ask for by
        name."""
        return cls((one.in_all, one.takes, one.name if one.name in by_name else "") for one in nodes)

    @classmethod
    def now(
        cls, nodes: Iterable[Node], holding: frozenset[UUID], promised: Iterable[Tasks], by_name: Collection[str] = ()
    ) -> Board:
        """As it is: without the bound tasks of the jobs that hold something (`holding`), and without what was promised
        to tasks that are not on a node yet. What of the latter has no place is left out: it waits for the scheduler."""
        board = cls((one.left_beside(holding), one.takes, one.name if one.name in by_name else "") for one in nodes)
        # Size after size: a packing for all of them may exist, and what the scheduler does is not known.
        counts = Counter[Tasks]()
        for one in promised:
            counts[replace(one, count=1)] += one.count
        # First those that have no choice.
        for one, count in sorted(counts.items(), key=lambda pair: pair[0].only is None):
            board._spaces = greedy(board._spaces, board._groups([replace(one, count=count)]))[1]
        return board

    def fits(self, tasks: tuple[Tasks, ...]) -> bool:
        """Whether all of them have a place at once."""
        if tasks in self._refused:
            return False
        if tasks not in self._accepted:
            groups = self._groups(tasks)
            placed, rest = greedy(self._spaces, groups)
            if placed < sum(one.count for one in groups):
                searched = search(self._spaces, groups)
                if searched is None:
                    self._refused[tasks] = placed
                    return False
                rest = searched
            self._accepted[tasks] = rest
        return True

    def most(self, tasks: tuple[Tasks, ...]) -> int:
        """How many of them have a place at once, about: all where `fits`, else what a greedy packing finds."""
        return sum(one.count for one in tasks) if self.fits(tasks) else self._refused[tasks]

    def left_on(self, name: str) -> Units:
        """What is left on one of the nodes that tasks may ask for by name; nothing where it is none of them."""
        left = next((left for left, _, called in self._spaces if name and called == name), ())
        return dict(zip(self._names, left, strict=False))

    def take(self, tasks: tuple[Tasks, ...]) -> None:
        """Promise their places; those that do not fit take none."""
        if self.fits(tasks):
            self._spaces = self._accepted[tasks]
            self._accepted.clear()

    def _groups(self, tasks: Iterable[Tasks]) -> list[Group]:
        """The large ones first; tasks that are alike together, so that the order in which roles are named is none."""
        counts = Counter[tuple[Kind, tuple[tuple[int, int], ...], frozenset[str] | None]]()
        for one in tasks:
            if one.count > 0:
                counts[one.kind, self._size(one.size), None if one.only is None else one.only.names] += one.count
        most = [0] * (len(self._names) + 1)
        for _, size, _ in counts:
            for at, need in size:
                most[at] = max(most[at], need)

        def weight(one: Group) -> tuple[float, float, Kind]:
            shares = [need / most[at] for at, need in one.size]
            return max(shares, default=0.0), sum(shares), one.kind

        return sorted(
            (Group(kind, size, count, self._others(size), only) for (kind, size, only), count in counts.items()),
            key=weight,
            reverse=True,
        )

    def _size(self, size: Resources) -> tuple[tuple[int, int], ...]:
        at = {name: number for number, name in enumerate(self._names)}
        return tuple(sorted((at.get(name, len(at)), need) for name, need in units_of(size).items() if need))

    def _others(self, size: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
        asked = {at for at, _ in size}
        return tuple(at for at in range(len(self._names)) if at not in asked)
