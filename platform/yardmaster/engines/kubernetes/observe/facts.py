"""From what the API server shows of a run to the contract's `Observation`. Pure, and total over what a server may show:
objects deleted by others, pods without status, events in any order.

Not here: what a role's objects say of its tasks (`rolefacts`), and how the objects were fetched (`engine`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from yardmaster.engines.kubernetes.client.objects import Raw, is_ending
from yardmaster.engines.kubernetes.observe.budget import with_budget
from yardmaster.engines.kubernetes.observe.gang_restart import Due, due
from yardmaster.engines.kubernetes.observe.imagefacts import lacks_words
from yardmaster.engines.kubernetes.observe.placing import GROWTH_EVENTS, refused_since
from yardmaster.engines.kubernetes.observe.rolefacts import released_task, task_of
from yardmaster.engines.kubernetes.observe.roles import RoleSeen, failed_in, lives, newest_of, repeated_in
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.manifests import workload_kind
from yardmaster.engines.kubernetes.render.record import (
    RECORD,
    GangRestarts,
    RunShape,
    in_order_of_application,
    released_in,
)
from yardmaster.engines.kubernetes.render.volumes import OF_CLAIMS
from yardmaster.job.spec import Role
from yardmaster.lifecycle.image_words import NOT_PULLED
from yardmaster.lifecycle.phases import ABSENT, Observation, Refused, TaskPhase, TaskState
from yardmaster.lifecycle.placing_words import SCALING_UP, VOLUME_PENDING
from yardmaster.lifecycle.success import UNSCHEDULABLE

_NOT_PLACED = (UNSCHEDULABLE, SCALING_UP, VOLUME_PENDING)

_AFTER_ALL_ELSE = "foregroundDeletion"
"""The finalizer of an object that goes when all that belongs to it has gone."""


@dataclass(frozen=True)
class Seen:
    """What was found of one run, raw. Only what belongs to this owner counts."""

    owner: Raw | None
    workloads: Sequence[Raw] = ()
    pods: Sequence[Raw] = ()
    events: Sequence[Raw] = ()


def observation_of(seen: Seen) -> Observation:
    """One state per task, in the spec's order. While the last workload is missing, and nothing was asked to end, the
    run does not exist: it is being submitted, or that was interrupted, or the workload was deleted from outside."""
    return _read(seen)[0]


def due_in(seen: Seen) -> Due | None:
    """What a restart of all tasks together still has to do; None where nothing is to be done (any more)."""
    return _read(seen)[1]


def go_with_token(seen: Seen, roles: Collection[Role]) -> bool:
    """Whether the end of the token would end these roles and no other, with one write where there are several to end.
    Asked of what is there: of a run that an earlier version began nothing belongs to its token."""
    there = {_role_of(one): one["metadata"].get("ownerReferences") or () for one in seen.workloads}
    held = {role for role, owners in there.items() if any(one["kind"] == "Secret" for one in owners)}
    return len(held) > 1 and held == there.keys() & {role.value for role in roles}


def has_left_over(seen: Seen) -> bool:
    """Whether the workload of a released role is still there: the garbage collector is late, and it makes pods."""
    released = {role.value for role in released_in((seen.owner or {}).get("data") or {})}
    return any(_role_of(one) in released for one in seen.workloads)


def goes_by_itself(owner: Raw) -> bool:
    """Whether the run was asked to go as a whole, and waits for the last of its pods."""
    return is_ending(owner) and _AFTER_ALL_ELSE in (owner["metadata"].get("finalizers") or ())


def _read(seen: Seen) -> tuple[Observation, Due | None]:
    if seen.owner is None:
        return ABSENT, None
    if is_ending(seen.owner):
        return _last_of(seen), None
    data = seen.owner.get("data") or {}
    shape, released, known = RunShape.from_json(data[RECORD]), released_in(data), GangRestarts.in_data(data)
    roles = _roles_of(seen, shape, known)
    last = in_order_of_application(shape.roles)[-1]
    if not released and any(one.role is last and one.workload is None for one in roles):
        missing = f"{workload_kind(last)} {seen.owner['metadata']['name']}-{last.value}"
        message = f"The {missing} is not on the cluster."
        to_come = tuple(_task_to_come(one, index) for one in roles for index in one.indexes())
        return Observation(False, to_come, message), None
    tasks: list[TaskState] = []
    for one in roles:
        if one.role in released:
            tasks += [released_task(one, index, released[one.role]) for index in one.indexes()]
        else:
            tasks += [task_of(one, index) for index in one.indexes()]
    restart = None if released else due(shape.strategy, roles, tasks, known)
    refused = None if released else _refused(roles, tasks)
    return Observation(True, tuple(tasks), _said_of(tasks), restart is not None, refused), restart


def _last_of(seen: Seen) -> Observation:
    """Of a run that was deleted: the tasks that have not ended yet. Where it was not finished, but only a finalizer of
    others holds it, there are none."""
    if seen.owner is None or not goes_by_itself(seen.owner):
        return ABSENT
    data = seen.owner.get("data") or {}
    roles = _roles_of(seen, RunShape.from_json(data[RECORD]), GangRestarts.in_data(data))
    living = [(one, index) for one in roles for index, pod in sorted(one.pods.items()) if lives(pod)]
    return Observation(False, tuple(task_of(one, index) for one, index in living)) if living else ABSENT


def _task_to_come(one: RoleSeen, index: int) -> TaskState:
    """Of a run that is not complete: what has no workload was not made yet, rather than removed. How its pods end is
    no verdict either, as they are told to: but one that had ended well has."""
    state = task_of(one, index)
    if one.workload is None and state.phase is not TaskPhase.SUCCEEDED:
        return TaskState(one.role, index, TaskPhase.PENDING)
    return state


def events_wanted(seen: Observation) -> list[str]:
    """The field selectors of the events that may say more of why tasks have not begun."""
    pending = [one for one in seen.tasks if one.phase is TaskPhase.PENDING] if seen.exists else []
    lacks_reason = any(not one.reason or (one.reason in NOT_PULLED and lacks_words(one.message)) for one in pending)
    is_refused = any(one.reason in _NOT_PLACED for one in pending)
    of_claims = [OF_CLAIMS] * any(one.reason == VOLUME_PENDING for one in pending)
    return ["type=Warning"] * lacks_reason + [f"reason={one}" for one in GROWTH_EVENTS if is_refused] + of_claims


def _refused(roles: Sequence[RoleSeen], tasks: Sequence[TaskState]) -> Refused | None:
    """Where the scheduler has no node for tasks that have never begun. One that comes back from a lost node, or is made
    again, waits for its place: the others have work to lose."""
    of_role = {one.role: one for one in roles}
    found: list[tuple[TaskState, datetime]] = []
    for task in tasks:
        pod = of_role[task.role].pods.get(task.index)
        is_new = task.phase is TaskPhase.PENDING and not task.restarts
        since = refused_since(pod) if pod is not None and is_new and task.reason in _NOT_PLACED else None
        if since is not None:
            found.append((task, since))
    if not found:
        return None
    is_growing = any(task.reason == SCALING_UP for task, _ in found)
    return Refused(min(since for _, since in found), found[0][0].message, is_growing)


def _roles_of(seen: Seen, shape: RunShape, gang_restarts: GangRestarts) -> list[RoleSeen]:
    """In the order of the spec."""
    uid = (seen.owner or {})["metadata"]["uid"]
    found = []
    for role in (role for role in Role if role in shape.roles):
        workload = next((one for one in seen.workloads if _belongs(one, role, uid)), None)
        mine = [one for one in seen.pods if _belongs(one, role, uid)]
        failed = failed_in(mine)
        repeated = repeated_in(failed)
        newest = newest_of(mine, repeated)
        found.append(RoleSeen(role, shape, workload, newest, tuple(seen.events), gang_restarts, repeated, failed))
    return with_budget(shape.retries, shape.strategy, found, gang_restarts)


def _belongs(found: Raw, role: Role, uid: str) -> bool:
    labels = found["metadata"].get("labels") or {}
    return _role_of(found) == role.value and labels.get(names.OWNER) == uid


def _role_of(found: Raw) -> str:
    return str((found["metadata"].get("labels") or {}).get(names.ROLE, ""))


def _said_of(tasks: Sequence[TaskState]) -> str:
    """What hinders the whole run: the first message of a task that has not begun."""
    return next((one.message for one in tasks if one.phase is TaskPhase.PENDING and one.message), "")
