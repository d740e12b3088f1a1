"""Which task of a job runs on which machine: all on one where that has the space, else packed as admission packs them
(`queueing.packing`), so that what is admitted has a place. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from yardmaster.job.spec import Resources, Role, TrainingSpec
from yardmaster.queueing.packing import Group, Spaces, greedy, search
from yardmaster.queueing.resources import units_of

Task = tuple[Role, int]
_NAMES = ("cpu", "memory", "gpus")
_MACHINE = len(_NAMES)
"""Where in a space the number of its machine stands."""


def placed(
    spec: TrainingSpec, free: Mapping[str, Resources], tasks: Collection[Task] | None = None
) -> dict[str, list[Task]] | None:
    """The tasks of each machine that gets some, by name; None where there is no place for all of them at once. `free`
    is what each machine has left, `tasks` some of the job's (None: all)."""
    wanted = spec.tasks() if tasks is None else [task for task in spec.tasks() if task in tasks]
    asked = [units_of(spec.roles[role].resources) for role, _ in wanted]
    for machine, _ in sorted(free.items(), key=lambda one: (one[1].gpus, one[1].cpu, one[1].memory, one[0])):
        left = units_of(free[machine])
        if all(sum(one.get(name, 0) for one in asked) <= left.get(name, 0) for name in _NAMES):
            return {machine: wanted}
    return _spread(spec, free, wanted)


def _spread(spec: TrainingSpec, free: Mapping[str, Resources], tasks: list[Task]) -> dict[str, list[Task]] | None:
    """Each space bears its machine, and for each role a counter of which every task takes one: what is left of these in
    the end says how many tasks of which role each machine got."""
    by_role: defaultdict[Role, list[Task]] = defaultdict(list)
    for task in tasks:
        by_role[task[0]].append(task)
    roles, machines, most = list(by_role), sorted(free), len(tasks)
    spaces: Spaces = {}
    for number, machine in enumerate(machines):
        left = units_of(free[machine])
        spaces[(*(left.get(name, 0) for name in _NAMES), number, *(most for _ in roles)), None, ""] = 1
    groups = [
        Group((role.value, False), _size(spec.roles[role].resources, _MACHINE + 1 + at), len(by_role[role]), ())
        for at, role in enumerate(roles)
    ]
    groups.sort(key=lambda one: _share(one, free), reverse=True)
    count, rest = greedy(spaces, groups)
    if count < len(tasks):
        found = search(spaces, groups)
        if found is None:
            return None
        rest = found
    return _dealt(by_role, machines, rest, most)


def _dealt(by_role: Mapping[Role, list[Task]], machines: list[str], rest: Spaces, most: int) -> dict[str, list[Task]]:
    """The tasks of each role in order of index, machine after machine."""
    waiting = {role: iter(tasks) for role, tasks in by_role.items()}
    found: dict[str, list[Task]] = {}
    for left, *_ in sorted(rest, key=lambda one: one[0][_MACHINE]):
        for at, role in enumerate(by_role):
            for _ in range(most - left[_MACHINE + 1 + at]):
                found.setdefault(machines[left[_MACHINE]], []).append(next(waiting[role]))
    return found


def _size(resources: Resources, counter: int) -> tuple[tuple[int, int], ...]:
    units = units_of(resources)
    return (*((at, units[name]) for at, name in enumerate(_NAMES) if units.get(name)), (counter, 1))


def _share(group: Group, free: Mapping[str, Resources]) -> tuple[float, str]:
    """How much of the largest machine one task takes: the large ones are placed first."""
    largest = [max((units_of(one).get(name, 0) for one in free.values()), default=0) for name in _NAMES]
    shares = [need / (largest[at] or 1) for at, need in group.size if at < len(_NAMES)]
    return max(shares, default=0.0), group.kind[0]
