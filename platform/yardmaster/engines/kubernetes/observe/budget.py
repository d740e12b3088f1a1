"""Which failures of a run no restart is left for: the spec's `retries` count the restarts of all its tasks. Pure.

A Job counts by itself the failures of each index, a kubelet those of each server's container, and neither knows of the
other. Hence every failure that shows is charged here, in the order of time: by the pods that failed, by what a Job
counts of those that are gone, and by a container's count. What the cluster itself took away costs nothing, and where
all tasks of a cluster start again together that costs one, however many of them failed with the first (`gang_restart`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from yardmaster.engines.kubernetes.client.objects import Raw, moment
from yardmaster.engines.kubernetes.observe import podfacts as pods
from yardmaster.engines.kubernetes.observe.placing import has_failed
from yardmaster.engines.kubernetes.observe.roles import RoleSeen, failures_of_pod
from yardmaster.engines.kubernetes.render.record import GangRestarts
from yardmaster.job.spec import Role, Strategy
from yardmaster.job.strategy import ROLES, Scope
from yardmaster.lifecycle.restarts import has_restart_left

Task = tuple[Role, int]


@dataclass(frozen=True)
class Failure:
    """One failure of one task; `at` is empty where nothing shows any more when it was, which is before all others."""

    role: Role
    index: int
    at: datetime | None = None
    rank: int = 0
    """Of those of one second: first whose task was started again, then those that ended, then the servers, which their
    kubelet starts whatever is left."""


def spent_up(
    retries: int, strategy: Strategy | None, roles: Sequence[RoleSeen], known: GangRestarts
) -> frozenset[Task]:
    """The tasks that failed when no restart was left for them."""
    charged = known.spent
    exhausted: set[Task] = set()
    gang = [one for one in roles if _scope_of(one, strategy) is Scope.CLUSTER]
    alone = [one for one in roles if one not in gang]
    failures = [failure for one in alone for failure in _failures_of(one)]
    first = failed_as_gang(gang, known)
    for failure in sorted([*failures, *first[:1]], key=_by_time):
        if not has_restart_left(retries, charged):
            exhausted |= {(one.role, one.index) for one in (first if failure in first else [failure])}
        charged += 1
    return frozenset(exhausted)


def with_budget(
    retries: int, strategy: Strategy | None, roles: Sequence[RoleSeen], known: GangRestarts
) -> list[RoleSeen]:
    """The roles, each knowing its tasks that no restart is left for. A Job that makes another pod of one all the same
    changes nothing of that, unless it has succeeded."""
    exhausted = spent_up(retries, strategy, roles, known)
    return [_marked(one, frozenset(index for role, index in exhausted if role is one.role)) for one in roles]


def _marked(one: RoleSeen, exhausted: frozenset[int]) -> RoleSeen:
    exhausted -= one.completed
    last = {index: one.failed_pods[index][-1] for index in exhausted if one.failed_pods.get(index)}
    return replace(one, exhausted=exhausted, pods={**one.pods, **last}) if exhausted else one


def _scope_of(one: RoleSeen, strategy: Strategy | None) -> Scope:
    """A run that was begun before its strategy was remembered is never restarted as a whole."""
    return Scope.TASK if strategy is None else ROLES[strategy][one.role].on_loss


def failed_as_gang(roles: Iterable[RoleSeen], known: GangRestarts) -> list[Failure]:
    """Of the tasks that start again together, those that failed since the last time that all did: one charge."""
    found = []
    for one in roles:
        for index, pod in one.pods.items():
            if pod["metadata"].get("uid") in known.stale and one.role is Role.PS:
                continue
            failures = failures_so_far(one, pod) - known.failures.get(f"{one.role.value}/{index}", 0)
            if failures > 0:
                found.append(Failure(one.role, index, _ended(pod)))
    return sorted(found, key=_by_time)


def _failures_of(one: RoleSeen) -> list[Failure]:
    """Every failure of each of its tasks: those of which the time shows, and those that are merely counted."""
    found = []
    for index, pod in one.pods.items():
        shown = [Failure(one.role, index, at, rank) for at, rank in _times(one, index, pod)]
        hidden = max(0, failures_so_far(one, pod) - len(shown))
        found += [Failure(one.role, index)] * hidden + shown
    return found


def _times(one: RoleSeen, index: int, pod: Raw) -> list[tuple[datetime, int]]:
    """When its task failed, as far as that shows, and the rank of each."""
    if one.role is Role.PS:
        at = _ended(pod)
        return [(at, 2)] if at is not None and failures_so_far(one, pod) else []
    ended = [(_ended(failed), int(failed is pod)) for failed in one.failed_pods.get(index, ())]
    return [(at, rank) for at, rank in ended if at is not None]


def failures_so_far(one: RoleSeen, pod: Raw) -> int:
    """How often its task failed so far, this pod's own end included."""
    if one.role is Role.PS:
        return int(pods.container_status(pod).get("restartCount") or 0)
    return failures_of_pod(pod) + has_failed(pod)


def _ended(pod: Raw) -> datetime | None:
    status = pods.container_status(pod)
    ended = status.get("state", {}).get("terminated") or status.get("lastState", {}).get("terminated") or {}
    return moment(ended.get("finishedAt"))


def _by_time(failure: Failure) -> tuple[bool, float, int, str, int]:
    time = 0.0 if failure.at is None else failure.at.timestamp()
    return failure.at is not None, time, failure.rank, failure.role.value, failure.index
