"""Whether a whole job fits on the nodes at once: bin packing of its tasks over what each node has free. Pure.

A sum does not tell: 2 + 2 free cores take two tasks of 1.2, and not three. A packing is looked for greedily first, the
largest tasks on the fullest nodes. Where that fails, a search decides: exactly for small cases, for large ones within
`MOST_STEPS`. So a large job on many oddly filled nodes may wait although a packing exists. One that is let in has one.

Which node a pod gets is the scheduler's decision. What it refuses goes back to the queue (`plan`).

All amounts are whole units, as in `pools`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from yardmaster.accelerators import asks_for_one
from yardmaster.spec import Resources

MOST_STEPS = 5_000
"""Of the search, for one job: some milliseconds."""
Units = Mapping[str, int]
Kind = tuple[str, bool]
"""The role of a task, and whether it asks for an accelerator: by these, nodes are for some tasks and not for others."""


@dataclass(frozen=True)
class Bound:
    """A task of the portal that is on a node already, and what it takes there."""

    job_id: UUID
    role: str
    resources: Resources


@dataclass(frozen=True)
class Node:
    """A node that takes tasks. `total` is what it has for jobs when nothing runs; `free` what others than the portal
    leave of it: the portal's own tasks, `bound`, are not subtracted. `takes`: tasks of which kinds; None: of all."""

    name: str
    total: Resources
    free: Resources
    bound: tuple[Bound, ...] = ()
    takes: frozenset[Kind] | None = None


@dataclass(frozen=True)
class Tasks:
    """So many equal tasks of a role. `role` is a stored name, which may be another release's."""

    role: str
    size: Resources
    count: int

    @property
    def kind(self) -> Kind:
        return self.role, asks_for_one(self.size.as_amounts())


def units(amount: Resources) -> dict[str, int]:
    """In whole units, without what is nothing."""
    found = {name: round(one * 1000) if name == "cpu" else int(one) for name, one in amount.as_amounts().items()}
    return {name: one for name, one in found.items() if one}


class _Space:
    """What one node has left."""

    __slots__ = ("left", "takes")

    def __init__(self, left: Units, takes: frozenset[Kind] | None) -> None:
        self.left = dict(left)
        self.takes = takes

    def times(self, size: Units, kind: Kind) -> int:
        """How many tasks of this size it takes."""
        if self.takes is not None and kind not in self.takes:
            return 0
        return min((max(0, self.left.get(name, 0)) // need for name, need in size.items()), default=1 << 30)

    def take(self, size: Units, count: int) -> None:
        for name, need in size.items():
            self.left[name] = self.left.get(name, 0) - need * count


@dataclass(frozen=True)
class _Group:
    """Tasks as the packing sees them."""

    kind: Kind
    size: Units
    count: int


_Move = tuple[_Space, int, int]
"""A space, which group, how many of it."""
_Counts = tuple[int, ...]
"""Of each group."""
_Frame = tuple[int, _Counts, Iterator[_Counts], _Counts]
"""Which node, what is still to be placed, the choices left for it, and the choice that led here."""


class Board:
    """What is free on each node, while jobs are promised some of it. That only becomes less: what was refused once is
    refused from then on."""

    def __init__(self, spaces: Iterable[tuple[Units, frozenset[Kind] | None]]) -> None:
        self._spaces = [_Space(left, takes) for left, takes in spaces]
        self._refused: dict[tuple[Tasks, ...], int] = {}
        """How many of these tasks fit, where not all do."""
        self._accepted: dict[tuple[Tasks, ...], list[_Move]] = {}

    @classmethod
    def idle(cls, nodes: Iterable[Node]) -> Board:
        """As if nothing of anybody's ran but what runs on every node."""
        return cls((units(one.total), one.takes) for one in nodes)

    @classmethod
    def now(cls, nodes: Iterable[Node], holding: frozenset[UUID], promised: Iterable[Tasks]) -> Board:
        """As it is: without the bound tasks of the jobs that hold something (`holding`), and without what was promised
        to tasks that are not on a node yet. What of the latter has no place is left out: it waits for the scheduler."""
        spaces = []
        for node in nodes:
            left = units(node.free)
            for one in node.bound:
                if one.job_id in holding:
                    for name, need in units(one.resources).items():
                        left[name] = left.get(name, 0) - need
            spaces.append((left, node.takes))
        board = cls(spaces)
        # One after another: a packing for all of them may exist, and what the scheduler does is not known.
        for tasks in promised:
            for space, _, count in _greedy(board._spaces, _groups([tasks]))[1]:
                space.take(units(tasks.size), count)
        return board

    def fits(self, tasks: tuple[Tasks, ...]) -> bool:
        """Whether all of them have a place at once."""
        if tasks in self._refused:
            return False
        if tasks not in self._accepted:
            groups = _groups(tasks)
            placed, moves = _greedy(self._spaces, groups)
            if placed < sum(one.count for one in groups):
                searched = _search(self._spaces, groups)
                if searched is None:
                    self._refused[tasks] = placed
                    return False
                moves = searched
            self._accepted[tasks] = moves
        return True

    def most(self, tasks: tuple[Tasks, ...]) -> int:
        """How many of them have a place at once, about: all where `fits`, else what a greedy packing finds."""
        return sum(one.count for one in tasks) if self.fits(tasks) else self._refused[tasks]

    def take(self, tasks: tuple[Tasks, ...]) -> None:
        """Promise their places; those that do not fit take none."""
        if not self.fits(tasks):
            return
        groups = _groups(tasks)
        for space, group, count in self._accepted[tasks]:
            space.take(groups[group].size, count)
        self._accepted.clear()


def _groups(tasks: Iterable[Tasks]) -> list[_Group]:
    """The large ones first; tasks that are alike together, so that the order in which roles are named is none."""
    counts: dict[tuple[Kind, tuple[tuple[str, int], ...]], int] = {}
    for one in tasks:
        if one.count > 0:
            key = one.kind, tuple(sorted(units(one.size).items()))
            counts[key] = counts.get(key, 0) + one.count
    groups = [_Group(kind, dict(size), count) for (kind, size), count in counts.items()]
    most = {name: max(one.size.get(name, 0) for one in groups) for one in groups for name in one.size}

    def weight(one: _Group) -> tuple[float, float]:
        shares = [need / most[name] for name, need in one.size.items()]
        return max(shares, default=0.0), sum(shares)

    return sorted(groups, key=lambda one: (*weight(one), one.kind), reverse=True)


def _greedy(spaces: Sequence[_Space], groups: Sequence[_Group]) -> tuple[int, list[_Move]]:
    """How many tasks got a place, and where: each group on the nodes that take the fewest of it first, and first of all
    on those that have nothing it does not ask for (a node with GPUs is left to who needs them)."""
    placed, moves = 0, list[_Move]()
    drafts: dict[int, _Space] = {}
    for number, group in enumerate(groups):
        found = []
        for at, space in enumerate(spaces):
            room = drafts.get(at, space).times(group.size, group.kind)
            if room:
                found.append((_has_more_kinds(space, group), room, at))
        need = group.count
        for _, room, at in sorted(found):
            draft = drafts.setdefault(at, _Space(spaces[at].left, spaces[at].takes))
            count = min(need, room)
            draft.take(group.size, count)
            moves.append((spaces[at], number, count))
            placed, need = placed + count, need - count
            if not need:
                break
    return placed, moves


def _has_more_kinds(space: _Space, group: _Group) -> int:
    return sum(1 for name, left in space.left.items() if left > 0 and name not in group.size)


def _search(spaces: Sequence[_Space], groups: Sequence[_Group]) -> list[_Move] | None:
    """A packing of all, or None where there is none or none was found within `MOST_STEPS`."""
    useful = [one for one in spaces if any(one.times(group.size, group.kind) for group in groups)]
    return _Search(useful, groups).run() if useful else None


class _Search:
    """Node after node, every maximal choice of tasks for it: more on a node never makes the rest harder."""

    def __init__(self, spaces: Sequence[_Space], groups: Sequence[_Group]) -> None:
        self._spaces, self._groups = spaces, groups
        self._steps = 0
        self._dead: set[tuple[int, _Counts]] = set()
        names = {name for group in groups for name in group.size}
        self._behind: list[dict[str, int]] = [dict.fromkeys(names, 0)]
        """What the nodes from here on have left together."""
        for space in reversed(spaces):
            last = self._behind[-1]
            self._behind.append({name: last[name] + max(0, space.left.get(name, 0)) for name in names})
        self._behind.reverse()

    def run(self) -> list[_Move] | None:
        # A stack, not calls: nodes may be more than Python's calls may be deep.
        first = tuple(one.count for one in self._groups)
        stack: list[_Frame] = [(0, first, iter(self._choices(0, first)), ())]
        while stack:
            at, wanted, choices, _ = stack[-1]
            choice = next(choices, None)
            if choice is None or self._steps > MOST_STEPS:
                self._dead.add((at, wanted))
                stack.pop()
                continue
            rest = tuple(need - count for need, count in zip(wanted, choice, strict=True))
            if not any(rest):
                return self._moves([*(taken for *_, taken in stack[1:]), choice])
            if (at + 1, rest) not in self._dead and self._may_hold(at + 1, rest):
                stack.append((at + 1, rest, iter(self._choices(at + 1, rest)), choice))
        return None

    def _may_hold(self, at: int, wanted: _Counts) -> bool:
        """Whether what the nodes from here on have together is enough."""
        behind = self._behind[at]
        asked: dict[str, int] = {}
        for group, need in zip(self._groups, wanted, strict=True):
            for name, size in group.size.items():
                asked[name] = asked.get(name, 0) + size * need
        return at < len(self._spaces) and all(need <= behind[name] for name, need in asked.items())

    def _choices(self, at: int, wanted: _Counts) -> Iterable[_Counts]:
        """Every maximal choice of tasks for a node, the most of the largest first."""
        return self._from(_Space(self._spaces[at].left, self._spaces[at].takes), 0, wanted)

    def _from(self, space: _Space, number: int, wanted: _Counts) -> Iterable[_Counts]:
        self._steps += 1
        group = self._groups[number]
        most = min(wanted[number], space.times(group.size, group.kind))
        if number == len(self._groups) - 1:
            yield (most,)
            return
        for count in range(most, -1, -1):
            if self._steps > MOST_STEPS:
                return
            draft = _Space(space.left, space.takes)
            draft.take(group.size, count)
            for rest in self._from(draft, number + 1, wanted):
                # Room for one more of this group makes it no maximal choice.
                after = _Space(draft.left, draft.takes)
                for later, taken in zip(self._groups[number + 1 :], rest, strict=True):
                    after.take(later.size, taken)
                if count == most or not after.times(group.size, group.kind):
                    yield (count, *rest)

    def _moves(self, choices: Sequence[_Counts]) -> list[_Move]:
        return [
            (self._spaces[at], number, count)
            for at, choice in enumerate(choices)
            for number, count in enumerate(choice)
            if count
        ]
