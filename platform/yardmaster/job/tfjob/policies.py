"""When a TFJob has succeeded, what restarts, how long it may run, and what is removed: as a job file says it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from yardmaster.job.spec import Strategy
from yardmaster.job.spec_limits import DEFAULT_LIMITS, shorten
from yardmaster.job.tfjob.parts import Kind, Part
from yardmaster.job.tfjob.replicas import Replica

_DECIDED_BY_CHIEF = (Strategy.BETWEEN_GRAPH, Strategy.MULTI_WORKER_MIRRORED)
NEVER = "Never"
_POLICIES = ("Never", "OnFailure", "Always", "ExitCode")


def success_of(spec: Part, strategy: Strategy) -> dict[str, Any]:
    """A TFJob has succeeded with its chief, or with worker 0, unless all workers are asked for."""
    policy = spec.text("successPolicy")
    if policy not in ("", "AllWorkers"):
        spec.findings.refuse("spec.successPolicy", "an empty text or AllWorkers", policy)
    if strategy not in _DECIDED_BY_CHIEF or policy == "AllWorkers":
        return {}
    message = "The job succeeds with its chief, or with worker 0 where there is none, as the TFJob does."
    remedy = "Remove success where all workers must succeed." if strategy is Strategy.BETWEEN_GRAPH else ""
    spec.findings.note(Kind.TAKEN, "spec.successPolicy", message, remedy)
    return {"success": {"rule": "chief"}}


def restarts_of(replicas: Sequence[Replica], policy: Part) -> dict[str, Any]:
    """`retries`. The tasks of a job restart for the same reasons, whichever role they have."""
    limit = policy.whole("backoffLimit")
    policies = {one.role: one.restart_policy or NEVER for one in replicas}
    for one in replicas:
        if one.restart_policy not in ("", *_POLICIES):
            policy.findings.refuse(f"{one.place}.restartPolicy", f"one of {', '.join(_POLICIES)}", one.restart_policy)
    where = "spec.tfReplicaSpecs"
    if len(set(policies.values())) > 1:
        said = ", ".join(f"{role.value} {name}" for role, name in policies.items())
        message = f"Restart policies differ ({said}). In a job, retries counts the restarts of all tasks together."
        policy.findings.note(Kind.CHANGED, where, message)
    if set(policies.values()) == {NEVER}:
        policy.findings.note(Kind.TAKEN, where, "restartPolicy Never: no task is restarted (retries: 0).")
        return {"retries": 0}
    if "Always" in policies.values():
        message = "restartPolicy Always: a task that has ended well is not started again. Parameter servers are."
        policy.findings.note(Kind.CHANGED, where, message)
    if "ExitCode" in policies.values():
        message = (
            "restartPolicy ExitCode: what a restart cannot mend is recognized by the failure, not by its exit code."
        )
        policy.findings.note(Kind.CHANGED, where, message)
    if limit is None:
        message = "The TFJob sets no backoffLimit: the tasks may restart 3 times together."
        policy.findings.note(Kind.CHANGED, "spec.runPolicy.backoffLimit", message, "Write retries for another number.")
        return {}
    return {"retries": min(limit, DEFAULT_LIMITS.retries)}


def limits_of(policy: Part, replicas: Sequence[Replica]) -> dict[str, Any]:
    """`max_runtime` and `grace_period`; the rest of the run policy is listed."""
    found: dict[str, Any] = {}
    if (seconds := policy.whole("activeDeadlineSeconds")) is not None:
        found["max_runtime"] = _within(seconds, 1, DEFAULT_LIMITS.runtime)
    graces = [one.grace_period for one in replicas if one.grace_period is not None]
    if graces:
        found["grace_period"] = _within(max(graces), 0, DEFAULT_LIMITS.grace)
    _clean_up(policy)
    if policy.whole("ttlSecondsAfterFinished") is not None:
        message = "ttlSecondsAfterFinished is left out: a job stays, with its log and results, until it is deleted."
        remedy = "Delete it with: yardmaster jobs delete JOB"
        policy.findings.note(Kind.LEFT_OUT, policy.name("ttlSecondsAfterFinished"), message, remedy)
    if policy.truth("suspend"):
        message = "suspend is left out: a job waits for its turn in the queue."
        policy.findings.note(Kind.LEFT_OUT, policy.name("suspend"), message, "Launch it when it is to run.")
    _scheduling(policy.part("schedulingPolicy"))
    policy.skip("managedBy")
    policy.list_unread("runPolicy")
    return found


def _within(seconds: int, least: int, most: timedelta) -> int:
    return max(least, min(seconds, int(most.total_seconds())))


def _clean_up(policy: Part) -> None:
    said = policy.text("cleanPodPolicy")
    if said not in ("", "None", "Running", "All"):
        policy.findings.refuse(policy.name("cleanPodPolicy"), "one of None, Running, All", said)
    message = (
        "Parameter servers end 30 seconds after the job (reclaim_delay), and what tasks printed and saved is kept."
    )
    if said == "None":
        remedy = "To look into a task that has failed, set hold_failed: 1h."
        policy.findings.note(Kind.CHANGED, policy.name("cleanPodPolicy"), f"cleanPodPolicy None: {message}", remedy)
    else:
        policy.findings.note(Kind.TAKEN, policy.name("cleanPodPolicy"), message)


def _scheduling(part: Part) -> None:
    if part.has("minAvailable"):
        message = "minAvailable: a job starts with all of its tasks, or waits."
        part.findings.note(Kind.TAKEN, part.name("minAvailable"), message)
    part.skip("minAvailable", "minResources", "scheduleTimeoutSeconds")
    for key, remedy in (
        ("queue", "Choose the namespace to launch in: each has its quota and its place in the queue."),
        ("priorityClass", "Set priority, a number that orders the jobs of your namespace."),
    ):
        if part.has(key):
            message = f"{key} {shorten(part.text(key))} is left out."
            part.findings.note(Kind.LEFT_OUT, part.name(key), message, remedy)
    part.list_unread("schedulingPolicy")
