"""Packing groups of equal tasks into nodes, those that are alike at once: greedily, and by a search. Pure, and about
numbers: what they stand for is known to `placement`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

MOST_STEPS = 5_000
"""Of the search, for one job: some milliseconds."""
Kind = tuple[str, bool]
"""The role of a task, or `SERVICE`, and whether it asks for an accelerator: by these, nodes are for some tasks and not
for others."""
SERVICE = "service"
"""In the place of the role, of the task of a service: nodes may be set apart for these."""
Space = tuple[tuple[int, ...], frozenset[Kind] | None, str]
"""What a node has left of each of the board's resources, in their order, what it takes, and its name where tasks ask
for it by name (else empty, so that nodes that are alike are one space)."""
Spaces = dict[Space, int]
"""How many nodes have that left: nodes that are alike are looked at once."""
_ANY_NUMBER = 1 << 30


@dataclass(frozen=True)
class Group:
    """Equal tasks as the packing sees them."""

    kind: Kind
    size: tuple[tuple[int, int], ...]
    """Which resources of the board, and how much of each."""
    count: int
    others: tuple[int, ...]
    """The board's resources that it does not ask for."""
    only: frozenset[str] | None = None
    """The names of the nodes that may take them; None: all."""

    def times(self, space: Space) -> int:
        """How many of these tasks a node takes that has this left."""
        left, takes, name = space
        if (takes is not None and self.kind not in takes) or (self.only is not None and name not in self.only):
            return 0
        return max(0, min([left[at] // need for at, need in self.size], default=_ANY_NUMBER))

    def without(self, space: Space, count: int) -> Space:
        """What is left where so many of these tasks were put."""
        left = list(space[0])
        for at, need in self.size:
            left[at] -= need * count
        return tuple(left), *space[1:]

    def spared(self, space: Space) -> int:
        """How many resources are left there that it does not ask for."""
        return sum([space[0][at] > 0 for at in self.others])


_Counts = tuple[int, ...]
"""Of each group."""
_Frame = tuple[int, _Counts, Iterator[_Counts], _Counts]
"""Which node, what is still to be placed, the choices left for it, and the choice that led here."""


def greedy(spaces: Spaces, groups: Sequence[Group]) -> tuple[int, Spaces]:
    """How many tasks got a place, and what is left then: each group on the nodes that take the fewest of it first, and
    first of all on those that have nothing it does not ask for (a node with GPUs is left to who needs them)."""
    placed, rest = 0, dict(spaces)
    for group in groups:
        found = [
            (group.spared(space), fits, at, space) for at, space in enumerate(rest) if (fits := group.times(space))
        ]
        need = group.count
        for _, fits, _, space in sorted(found):
            full = min(rest[space], need // fits)
            _put(rest, space, group.without(space, fits), full)
            need -= full * fits
            if 0 < need < fits and space in rest:
                _put(rest, space, group.without(space, need), 1)
                need = 0
            if not need:
                break
        placed += group.count - need
    return placed, rest


def _put(spaces: Spaces, before: Space, after: Space, nodes: int) -> None:
    """So many nodes that had one thing left have another now."""
    if nodes:
        spaces[before] -= nodes
        if not spaces[before]:
            del spaces[before]
        spaces[after] = spaces.get(after, 0) + nodes


def search(spaces: Spaces, groups: Sequence[Group]) -> Spaces | None:
    """What is left beside a packing of all, or None where there is none or none was found within `MOST_STEPS`."""
    if any(group.count > sum(group.times(space) * spaces[space] for space in spaces) for group in groups):
        return None  # this group alone has no place: the usual case, and soon found
    some = [space for space in spaces if any(group.times(space) for group in groups)]
    useful = [space for space in some for _ in range(spaces[space])]
    choices = _Search(useful, groups).run()
    if choices is None:
        return None
    rest = dict(spaces)
    for space, choice in zip(useful, choices, strict=False):
        _put(rest, space, _beside(space, groups, choice), 1)
    return rest


class _Search:
    """Node after node, every maximal choice of tasks for it: more on a node never makes the rest harder."""

    def __init__(self, spaces: Sequence[Space], groups: Sequence[Group]) -> None:
        self._spaces, self._groups = spaces, groups
        self._steps = 0
        self._dead: set[tuple[int, _Counts]] = set()
        free = zip(*([max(0, one) for one in left] for left, *_ in reversed(spaces)), strict=True)
        self._behind = [[*accumulate(column, initial=0)][::-1] for column in free]
        """Of each resource: what the nodes from each one on have left together."""

    def run(self) -> list[_Counts] | None:
        """How many of each group the first nodes take."""
        # A stack, not calls: nodes may be more than Python's calls may be deep.
        first = tuple(one.count for one in self._groups)
        stack: list[_Frame] = [(0, first, self._choices(self._spaces[0], 0, first), ())]
        while stack:
            at, wanted, choices, _ = stack[-1]
            choice = next(choices, None)
            if choice is None or self._steps > MOST_STEPS:
                self._dead.add((at, wanted))
                stack.pop()
                continue
            rest = tuple(need - count for need, count in zip(wanted, choice, strict=True))
            if not any(rest):
                return [*(taken for *_, taken in stack[1:]), choice]
            if (at + 1, rest) not in self._dead and self._may_hold(at + 1, rest):
                stack.append((at + 1, rest, self._choices(self._spaces[at + 1], 0, rest), choice))
        return None

    def _may_hold(self, at: int, wanted: _Counts) -> bool:
        """Whether what the nodes from here on have together is enough."""
        asked: dict[int, int] = {}
        for group, need in zip(self._groups, wanted, strict=True):
            for which, size in group.size:
                asked[which] = asked.get(which, 0) + size * need
        return at < len(self._spaces) and all(need <= self._behind[which][at] for which, need in asked.items())

    def _choices(self, space: Space, number: int, wanted: _Counts) -> Iterator[_Counts]:
        """Every maximal choice of tasks of the groups from this one on for a node, the most of the largest first."""
        self._steps += 1
        group = self._groups[number]
        most = min(wanted[number], group.times(space))
        if number == len(self._groups) - 1:
            yield (most,)
            return
        for count in range(most, -1, -1):
            if self._steps > MOST_STEPS:
                return
            draft = group.without(space, count)
            for rest in self._choices(draft, number + 1, wanted):
                if count == most or not group.times(_beside(draft, self._groups[number + 1 :], rest)):
                    yield (count, *rest)  # space for one more of this group would make it no maximal choice


def _beside(space: Space, groups: Iterable[Group], taken: _Counts) -> Space:
    """What is left beside so many of each group."""
    for group, count in zip(groups, taken, strict=True):
        space = group.without(space, count)
    return space
