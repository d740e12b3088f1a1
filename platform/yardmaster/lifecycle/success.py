"""When a job has succeeded or failed, from what is observed alone: pure functions of (spec, observation).

The precedence, first that applies:

1. Success. The tasks that decide have all ended well: the leading task (the chief, or worker 0 without one) under the
   rule `chief`; under the rule `workers` the chief, where there is one, and `success_percent` of the workers, rounded
   up. Workers that never end by themselves (`parameter_server`) are not waited for: there the chief alone decides, and
   of a Spark application its driver.
   Whatever else failed, the training is done: success wins over every failure that is seen with it. Servers that
   a program outside drives (`in_graph`) never succeed: being stopped is their normal end.
2. Failure. A task has failed for good (the engine does not start it again) and the job needs it. The evaluator is
   never needed. Under the rule `workers` a worker is needed only while the percentage cannot be reached without it.
   Every other task is needed, and where there are only servers each must continue. Of several failures one that others
   caused by removing something is the verdict, else the first in time: the rest mostly follow from it.
3. Otherwise there is no verdict yet. A task that ended well without deciding (a PS that ends itself) means nothing.

Not here: time limits of the clock (`plan` asks; the words are here) and restarts (`restarts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from yardmaster.job.spec import Role, SuccessRule, TrainingSpec
from yardmaster.job.strategy import ROLES, leading_task, never_ending_roles, only_serves
from yardmaster.lifecycle.failures import REASONS, Blame, Verdict, task_name, verdict_for
from yardmaster.lifecycle.phases import Observation, TaskPhase, TaskState

SUCCEEDED = "Succeeded"
"""The reason of a verdict that is a success; every other reason is a failure (`failures.REASONS`)."""
SERVER_ENDED = "ServerEnded"
ENGINE_AWAY = "EngineUnavailable"
UNSCHEDULABLE = "Unschedulable"
STOPPED_OUTSIDE = "StoppedOutside"
"""The reason of a verdict on tasks that were ended on the engine itself."""


def job_verdict(spec: TrainingSpec, seen: Observation) -> Verdict | None:
    """The verdict that this observation alone gives, or None. The order of the tasks does not matter."""
    wanted = set(spec.tasks())
    tasks = [task for task in seen.tasks if (task.role, task.index) in wanted]
    if has_succeeded(spec, tasks):
        return _success(spec)
    fatal = _fatal_failures(spec, tasks)
    return None if not fatal else _failure(spec, min(fatal, key=_by_time))


def needed_workers(spec: TrainingSpec) -> int:
    """How many workers must end well for the job to succeed under its rule."""
    is_led = Role.WORKER in never_ending_roles(spec.strategy) or Role.WORKER not in ROLES[spec.strategy]
    if spec.success_rule is SuccessRule.CHIEF or is_led:
        return 1 if leading_task(spec)[0] is Role.WORKER else 0
    # Rounded up in integers: 2/3 of three workers are two, never 2.0000000000000004.
    return max(1, -(-spec.replicas(Role.WORKER) * spec.success_percent // 100))


def has_succeeded(spec: TrainingSpec, tasks: Sequence[TaskState]) -> bool:
    """Whether those who decide have all ended well."""
    if only_serves(spec.strategy):
        return False
    ended_well = {(task.role, task.index) for task in tasks if task.phase is TaskPhase.SUCCEEDED}
    if _leader_must_succeed(spec) and leading_task(spec) not in ended_well:
        return False
    return sum(role is Role.WORKER for role, _ in ended_well) >= needed_workers(spec)


def _leader_must_succeed(spec: TrainingSpec) -> bool:
    return spec.success_rule is SuccessRule.CHIEF or leading_task(spec)[0] is not Role.WORKER


def _fatal_failures(spec: TrainingSpec, tasks: Sequence[TaskState]) -> list[TaskState]:
    """The failed tasks that the job cannot do without."""
    failed = [task for task in tasks if _can_no_longer_succeed(spec, task)]
    lost_workers = [task for task in failed if task.role is Role.WORKER]
    others = [task for task in failed if task.role not in (Role.WORKER, Role.EVALUATOR)]
    if lost_workers and not _may_lose(spec, lost_workers):
        return others + lost_workers
    return others


def _can_no_longer_succeed(spec: TrainingSpec, task: TaskState) -> bool:
    """Failed; or ended by a stop that was not ours, of a task that the verdict waits for: nothing would ever decide.
    Where there are only servers, whichever has ended."""
    if only_serves(spec.strategy):
        return task.phase.is_ended
    if task.phase is TaskPhase.RELEASED:
        return task.role not in never_ending_roles(spec.strategy)
    return task.phase is TaskPhase.FAILED


def _may_lose(spec: TrainingSpec, workers: Sequence[TaskState]) -> bool:
    """Whether the job can still succeed without these workers."""
    if spec.success_rule is SuccessRule.CHIEF or Role.WORKER in never_ending_roles(spec.strategy):
        return False
    return spec.replicas(Role.WORKER) - len(workers) >= needed_workers(spec)


def _by_time(task: TaskState) -> tuple[bool, bool, float, str, int]:
    """What others removed first: the rest mostly fails of that. Then first in time first; those without a time last;
    then in a fixed order, so that the verdict is one."""
    time = 0.0 if task.finished_at is None else task.finished_at.timestamp()
    return (task.reason != STOPPED_OUTSIDE, task.finished_at is None, time, task.role.value, task.index)


def _success(spec: TrainingSpec) -> Verdict:
    role, index = leading_task(spec)
    workers = needed_workers(spec)
    is_alone = spec.success_rule is SuccessRule.CHIEF or spec.replicas(Role.WORKER) == 1
    if is_alone or (role is not Role.WORKER and workers == 0):
        message = f"{task_name(role, index)} completed successfully."
    else:
        count = spec.replicas(Role.WORKER)
        those = f"{workers} of {count} workers" if workers < count else f"all {count} workers"
        who = f"The chief and {those}" if role is Role.CHIEF else f"At least {those}" if workers < count else those
        message = f"{who[0].upper()}{who[1:]} completed successfully."
    return Verdict(SUCCEEDED, message)


def _failure(spec: TrainingSpec, task: TaskState) -> Verdict:
    if task.phase is TaskPhase.RELEASED:
        known = REASONS[STOPPED_OUTSIDE]
        sentence = known.sentence.format(task=task_name(task.role, task.index))
        return Verdict(STOPPED_OUTSIDE, sentence, known.remedy, known.blame, task.role, task.index, task.exit_code)
    if only_serves(spec.strategy) and verdict_for(task).reason == "ScriptFailed":
        return verdict_for(replace(task, reason=SERVER_ENDED))
    return verdict_for(task)


def deadline_verdict(spec: TrainingSpec) -> Verdict:
    """The job ran longer than its own `max_runtime`."""
    seconds = int(spec.max_runtime.total_seconds()) if spec.max_runtime is not None else 0
    known = REASONS["DeadlineExceeded"]
    remedy = "Relaunch it if it is still needed." if only_serves(spec.strategy) else known.remedy
    return Verdict(
        "DeadlineExceeded",
        f"The job reached its time limit of {seconds} s and was stopped.",
        remedy,
        known.blame,
    )


def lost_verdict(missing: str = "") -> Verdict:
    """The engine no longer knows the run, or shows nothing that could still decide it. `missing` is what it misses of a
    run that it knows: that was removed from outside."""
    if missing:
        outside = REASONS[STOPPED_OUTSIDE]
        message = f"{missing} It was removed, but not through Yardmaster."
        return Verdict(STOPPED_OUTSIDE, message, outside.remedy, outside.blame)
    known = REASONS["Lost"]
    return Verdict(
        "Lost", "The engine no longer has the job, and its exit status is unknown.", known.remedy, known.blame
    )


def away_verdict(limit: timedelta) -> Verdict:
    """The engine could not be asked for so long that it is not waited for any more."""
    known = REASONS[ENGINE_AWAY]
    message = f"The engine could not be reached for {_time_words(limit)}."
    return Verdict(ENGINE_AWAY, message, known.remedy, known.blame)


def not_taken_verdict(patience: timedelta, times: int, *, is_last: bool) -> Verdict:
    """The engine did not take an admitted job for the `times`th time: why it goes back to the queue, or has failed."""
    known = REASONS[ENGINE_AWAY]
    message = f"The engine did not take the job for {_time_words(patience)}" + (
        f", {times} times." if times > 1 else "."
    )
    remedy = (
        known.remedy if is_last else "Nothing to do: its quota was released, and it is resubmitted after a back-off."
    )
    return Verdict(ENGINE_AWAY, message, remedy, known.blame)


def refused_verdict(message: str, patience: timedelta) -> Verdict:
    """The engine took the job, and had no place for all of its tasks: why it goes back to the queue."""
    known = REASONS[UNSCHEDULABLE]
    said = f" {message}" if message else ""
    return Verdict(
        UNSCHEDULABLE,
        f"For {_time_words(patience)} the engine could not place all tasks at the same time.{said}",
        "Nothing to do: its quota was released, and it is retried after a back-off. Smaller tasks may fit sooner.",
        known.blame,
    )


def stopped_unseen_verdict(patience: timedelta) -> Verdict:
    """Stopped as far as the portal is concerned: the engine could not be asked whether all has ended."""
    message = (
        f"The engine could not be reached for {_time_words(patience)}. Tasks that still run there are removed later."
    )
    return Verdict("Stopped", message, "", Blame.PLATFORM)


def _time_words(time: timedelta) -> str:
    """In the largest unit that gives a whole number."""
    seconds = int(time.total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{seconds} s"


def never_started_verdict(spec: TrainingSpec, seen: Observation, timeout: timedelta) -> Verdict:
    """After `timeout` some task had not begun. The reason is what held it up, where the engine says so."""
    begun = {(task.role, task.index) for task in seen.tasks if task.phase is not TaskPhase.PENDING}
    missing = [one for one in spec.tasks() if one not in begun]
    pending = [task for task in seen.tasks if (task.role, task.index) in set(missing)]
    held_up = next((task for task in pending if task.reason in REASONS), None)
    message = (
        f"{len(missing)} of {len(spec.tasks())} tasks had not started {int(timeout.total_seconds()) // 60} minutes "
        f"after the job was admitted."
    )
    if held_up is None:
        known = REASONS["StartTimeout"]
        return Verdict("StartTimeout", f"{message} {seen.message}".strip(), known.remedy, Blame.PLATFORM)
    cause = verdict_for(held_up)
    return Verdict(cause.reason, f"{message} {cause.message}", cause.remedy, cause.blame, cause.role, cause.index)
