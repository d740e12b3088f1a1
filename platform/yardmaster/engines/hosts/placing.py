"""Which task of a job runs on which machine: all on one where that has the space, else packed as admission packs them
(`queueing.packing`), so that what is admitted has a place. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from yardmaster.job.spec import Resources, Role, TrainingSpec
from yardmaster.queueing.packing import Group, Spaces, greedy, search
from yardmaster.queueing.resources import units_of

Task = tuple[Role, int]
_NAMES = ("cpu", "memory", "gpus")


def placed(spec: TrainingSpec, free: Mapping[str, Resources]) -> dict[str, list[Task]] | None:
    """The tasks of each machine that gets some, by name; None where there is no place for all of them at once. `free`
    is what each machine has left."""
    tasks = spec.tasks()
    asked = [units_of(spec.roles[role].resources) for role, _ in tasks]
    for machine, _ in sorted(free.items(), key=lambda one: (one[1].gpus, one[1].cpu, one[1].memory, one[0])):
        left = units_of(free[machine])
        if all(sum(one.get(name, 0) for one in asked) <= left.get(name, 0) for name in _NAMES):
            return {machine: tasks}
    return _spread(spec, free)


def _spread(spec: TrainingSpec, free: Mapping[str, Resources]) -> dict[str, list[Task]] | None:
    """Each space bears its machine, and for each role a counter of which every task takes one: what is left of these in
    the end says how many tasks of which role each machine got."""
    roles, machines = list(spec.roles), sorted(free)
    most = 1 + sum(one.replicas for one in spec.roles.values())
    spaces: Spaces = {}
    for number, machine in enumerate(machines):
        left = units_of(free[machine])
        spaces[(*(left.get(name, 0) for name in _NAMES), number, *(most for _ in roles)), None] = 1
    at = len(_NAMES) + 1
    groups = [
        Group((role.value, False), _size(spec.roles[role].resources, at + which), spec.roles[role].replicas, ())
        for which, role in enumerate(roles)
    ]
    groups.sort(key=lambda one: _share(one, free), reverse=True)
    count, rest = greedy(spaces, groups)
    if count < len(spec.tasks()):
        found = search(spaces, groups)
        if found is None:
            return None
        rest = found
    return _dealt(spec, machines, rest, at, most)


def _dealt(spec: TrainingSpec, machines: list[str], rest: Spaces, at: int, most: int) -> dict[str, list[Task]]:
    """The tasks of each role in order of index, machine after machine."""
    next_index = Counter[Role]()
    found: dict[str, list[Task]] = {}
    for (left, _), _ in sorted(rest.items(), key=lambda one: one[0][0][len(_NAMES)]):
        for which, role in enumerate(spec.roles):
            for _ in range(most - left[at + which]):
                found.setdefault(machines[left[len(_NAMES)]], []).append((role, next_index[role]))
                next_index[role] += 1
    order = {task: number for number, task in enumerate(spec.tasks())}
    return {machine: sorted(tasks, key=order.__getitem__) for machine, tasks in found.items()}


def _size(resources: Resources, counter: int) -> tuple[tuple[int, int], ...]:
    units = units_of(resources)
    return (*((at, units[name]) for at, name in enumerate(_NAMES) if units.get(name)), (counter, 1))


def _share(group: Group, free: Mapping[str, Resources]) -> tuple[float, str]:
    """How much of the largest machine one task takes: the large ones are placed first."""
    largest = [max((units_of(one).get(name, 0) for one in free.values()), default=0) for name in _NAMES]
    shares = [need / (largest[at] or 1) for at, need in group.size if at < len(_NAMES)]
    return max(shares, default=0.0), group.kind[0]
