"""When must all tasks of a run restart, because one was lost without which the others cannot continue? Pure.

The cluster's controllers bring back each pod alone. That is all where a task's loss is its own (`strategy.Scope.TASK`).
Where it is the cluster's, as with the chief and the servers of `parameter_server`, the others continue with what is no
longer there, or wait for ever: then every pod that was there at the time is evicted, which costs it no restart, and the
controllers make new ones.

What was lost already, and which pods are to go, stands in the owner (`GangRestarts`), so that every loss counts once,
whichever process sees it, and however often. A loss is determined by what the API server shows of it: how often a Job
has made the pod of an index, a server's pod that is leaving, has failed, was started again within, or is younger than
its chief.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from yardmaster.engines.kubernetes.client.objects import Raw, is_ending, moment
from yardmaster.engines.kubernetes.observe import podfacts as pods
from yardmaster.engines.kubernetes.observe.budget import failed_as_gang, failures_so_far
from yardmaster.engines.kubernetes.observe.placing import has_failed
from yardmaster.engines.kubernetes.observe.roles import RoleSeen, failures_of_pod, lives, restarts_of_pod
from yardmaster.engines.kubernetes.render.record import GangRestarts
from yardmaster.job.spec import Role, Strategy
from yardmaster.job.strategy import ROLES, Scope
from yardmaster.lifecycle.phases import TaskPhase, TaskState

LATE = timedelta(seconds=60)
"""A server's pod that was made this much later than its chief began, and the grace period on top, takes the place of
one that the chief knew. Nothing else tells of a server that was removed by force."""


@dataclass(frozen=True)
class Due:
    """All tasks are to restart: first `note` is written, where it is `new`, then the pods with these uids end."""

    note: GangRestarts
    """For the owner's data."""
    new: bool
    pods: tuple[Raw, ...]


def due(
    strategy: Strategy | None, roles: Sequence[RoleSeen], tasks: Sequence[TaskState], known: GangRestarts
) -> Due | None:
    """What is to be done, None where nothing is, or where one has failed too often."""
    if strategy is None:  # a run that was begun before this was remembered
        return None
    cluster = [one for one in roles if ROLES[strategy][one.role].has_server]
    fatal = [one for one in cluster if ROLES[strategy][one.role].on_loss is Scope.CLUSTER]
    if not fatal or _is_decided(tasks, {one.role for one in cluster}):
        return None
    all_pods = [pod for one in cluster for pod in one.pods.values()]
    there = [pod for pod in all_pods if lives(pod)]
    left = tuple(pod for pod in there if _uid(pod) in known.stale and not is_ending(pod))
    if left:
        return Due(known, new=False, pods=left)  # the process that wrote the note did not act on it
    if not any(_has_lost(one, known, fatal) for one in fatal):
        return None
    ended = {name: count for one in fatal for name, count in _lives_after(one, known).items()}
    spent = known.spent + bool(failed_as_gang(fatal, known))
    counted = {**known.failures, **{_name(one.role, index): count for one, index, count in _failures_in(fatal)}}
    note = GangRestarts(known.count + 1, spent, ended, frozenset(_uid(pod) for pod in all_pods), counted)
    return Due(note, new=True, pods=tuple(pod for pod in there if not is_ending(pod)))


def _failures_in(roles: Sequence[RoleSeen]) -> list[tuple[RoleSeen, int, int]]:
    """How often the task of each index failed, of Jobs: a set's pods are distinguished by their uids."""
    jobs = [one for one in roles if one.role is not Role.PS]
    return [(one, index, failures_so_far(one, pod)) for one in jobs for index, pod in one.pods.items()]


def _is_decided(tasks: Iterable[TaskState], cluster: set[Role]) -> bool:
    """A task of the cluster has ended for good, well or badly: a gang restart is not possible any more."""
    return any(task.role in cluster and task.phase in (TaskPhase.SUCCEEDED, TaskPhase.FAILED) for task in tasks)


def _has_lost(one: RoleSeen, known: GangRestarts, fatal: Sequence[RoleSeen]) -> bool:
    if one.role is Role.PS:
        chief = next((other.pods.get(0) for other in fatal if other.role is Role.CHIEF), None)
        return any(_is_another_server(pod, chief, one, known) for pod in one.pods.values())
    return any(ended > known.lives.get(_name(one.role, index), 0) for index, ended in _lives_of(one, known).items())


def _lives_after(one: RoleSeen, known: GangRestarts) -> dict[str, int]:
    """How many lives the role's tasks have had when their pods of now are gone."""
    if one.role is Role.PS:
        return {}
    ended = _lives_of(one, known)
    return {
        _name(one.role, index): restarts_of_pod(one.pods[index]) + 1 if index in one.pods else ended[index]
        for index in one.indexes()
    }


def _lives_of(one: RoleSeen, known: GangRestarts) -> dict[int, int]:
    """How many lives of each of the role's tasks have ended. Never one too many, which would hide a loss; one too few
    is made up for when the task's next pod is there."""
    found = {index: known.lives.get(_name(one.role, index), 0) for index in one.indexes()}
    missing = found.keys() - one.pods.keys()
    if len(missing) == 1:  # removed by force, or not made yet: its Job counts what it saw of all
        counted = int((one.workload or {}).get("status", {}).get("failed") or 0)
        hidden = counted - sum(_failures(pod) for pod in one.pods.values())
        found |= {index: max(found[index], hidden) for index in missing}
    return found | {index: restarts_of_pod(pod) + _is_over(pod) for index, pod in one.pods.items()}


def _is_over(pod: Raw) -> bool:
    return pod.get("status", {}).get("phase") == "Failed" or is_ending(pod)


def _failures(pod: Raw) -> int:
    """What its Job counts of the task that this is the newest pod of."""
    return failures_of_pod(pod) + has_failed(pod)


def _is_another_server(pod: Raw, chief: Raw | None, one: RoleSeen, known: GangRestarts) -> bool:
    if _uid(pod) in known.stale:
        return False
    if _is_over(pod) or _has_failed(pod, known):
        return True
    running = pods.container_status(chief or {}).get("state", {}).get("running") or {}
    made, begun = moment(pod["metadata"].get("creationTimestamp")), moment(running.get("startedAt"))
    if made is None or begun is None or is_ending(chief or pod):
        return False
    return made > begun + timedelta(seconds=one.shape.grace) + LATE


def _has_failed(pod: Raw, known: GangRestarts) -> bool:
    """Whether the kubelet has started its container again: that of a server, for no other is started within its pod."""
    return _uid(pod) not in known.stale and int(pods.container_status(pod).get("restartCount") or 0) > 0


def _uid(pod: Raw) -> str:
    return str(pod["metadata"].get("uid", ""))


def _name(role: Role, index: int) -> str:
    return f"{role.value}/{index}"
