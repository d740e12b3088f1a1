"""From what the API server shows of a run to the contract's `Observation`. Pure, and total over what a server may show:
objects deleted by others, pods without status, events in any order.

Not here: what a role's objects say of its tasks (`rolefacts`), and how the objects were fetched (`engine`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes.podfacts import Raw
from yardmaster.engines.kubernetes.rolefacts import RoleSeen, newest_of, released_task, task_of
from yardmaster.engines.kubernetes.shape import RECORD, RunShape, released_in
from yardmaster.phases import ABSENT, Observation, TaskPhase, TaskState
from yardmaster.spec import Role


@dataclass(frozen=True)
class Seen:
    """What was found of one run, raw. Only what belongs to this owner counts."""

    owner: Raw | None
    workloads: Sequence[Raw] = ()
    pods: Sequence[Raw] = ()
    events: Sequence[Raw] = ()

    def is_complete(self) -> bool:
        """Whether its submission came to its end. Before, it is as good as absent: it will be submitted again."""
        return self.owner is not None and names.COMPLETE in (self.owner["metadata"].get("annotations") or {})


def observation_of(seen: Seen) -> Observation:
    """One state per task, in the spec's order."""
    if seen.owner is None or not seen.is_complete():
        return ABSENT
    data = seen.owner.get("data") or {}
    shape, released = RunShape.from_json(data[RECORD]), released_in(data)
    tasks: list[TaskState] = []
    for role in (role for role in Role if role in shape.roles):
        one = _role_of(seen, role, shape)
        if role in released:
            tasks += [released_task(one, index, released[role]) for index in range(shape.roles[role].replicas)]
        else:
            tasks += [task_of(one, index) for index in range(shape.roles[role].replicas)]
    return Observation(True, tuple(tasks), _said_of(tasks))


def needs_events(seen: Observation) -> bool:
    """Whether some task is held up by what only an event tells."""
    return any(one.phase is TaskPhase.PENDING and not one.reason for one in seen.tasks)


def _role_of(seen: Seen, role: Role, shape: RunShape) -> RoleSeen:
    uid = (seen.owner or {})["metadata"]["uid"]
    workload = next((one for one in seen.workloads if _belongs(one, role, uid)), None)
    newest = newest_of([one for one in seen.pods if _belongs(one, role, uid)])
    return RoleSeen(role, shape, workload, newest, tuple(seen.events))


def _belongs(found: Raw, role: Role, uid: str) -> bool:
    labels = found["metadata"].get("labels") or {}
    return labels.get(names.ROLE) == role.value and labels.get(names.OWNER) == uid


def _said_of(tasks: Sequence[TaskState]) -> str:
    """What hinders the whole run: the first message of a task that has not begun."""
    return next((one.message for one in tasks if one.phase is TaskPhase.PENDING and one.message), "")
