"""What the jobs of trials have come to: their phase, and their metric as far as it was reported.

While a job runs only its newer points are read; once it is over, all of them once more. An attempt that resumes from a
checkpoint continues the curve of the earlier ones; one that starts again has a curve of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from apps.jobs.models import Job, ScalarPoint
from apps.jobs.state.curves import Point, thin
from apps.sweeps.models import SweepTrial
from yardmaster.lifecycle.phases import Phase
from yardmaster.sweeps.decision import TrialState
from yardmaster.sweeps.plan import Metric

POINTS_KEPT = 60
_POINTS_READ = 5_000
_STATES = {Phase.SUCCEEDED: TrialState.SUCCEEDED, Phase.FAILED: TrialState.FAILED}
_WRITTEN = [
    "state", "started_at", "ended_at", "attempt", "run", "steps", "value", "best", "best_step", "curve",
]  # fmt: skip


def trials_read(trials: Sequence[SweepTrial], metric: Metric | None, now: datetime) -> None:
    """Bring these active trials, read with their jobs, up to date, and write what has changed. May be repeated."""
    changed = []
    for trial in trials:
        before = [getattr(trial, name) for name in _WRITTEN]
        _read(trial, metric, now)
        if before != [getattr(trial, name) for name in _WRITTEN]:
            changed.append(trial)
    SweepTrial.objects.bulk_update(changed, _WRITTEN, batch_size=50)


def _read(trial: SweepTrial, metric: Metric | None, now: datetime) -> None:
    job = trial.job
    if job is None or job.deleted_at is not None:  # deleted meanwhile, by a person
        trial.state, trial.ended_at = TrialState.STOPPED.value, now
        return
    trial.started_at = job.started_at
    if trial.attempt < job.resumes_from or job.is_over:
        _forget(trial)
    trial.attempt = job.attempt
    if metric is not None:
        _take(trial, job, metric)
    if job.is_over:
        state = _STATES.get(Phase(job.phase), TrialState.STOPPED)
        early = state is not TrialState.FAILED and bool(trial.stop_reason)
        trial.state = TrialState.STOPPED_EARLY.value if early else state.value
        trial.ended_at = job.decided_at or now


def _forget(trial: SweepTrial) -> None:
    trial.steps = trial.value = trial.best = trial.best_step = None
    trial.run, trial.curve = "", []


def _take(trial: SweepTrial, job: Job, metric: Metric) -> None:
    points = ScalarPoint.objects.filter(job=job, attempt__gte=job.resumes_from, tag=metric.tag)
    if metric.run is not None:
        points = points.filter(run=metric.run)
    elif trial.curve:
        points = points.filter(run=trial.run)
    if trial.steps is not None:
        points = points.filter(step__gt=trial.steps)
    rows = list(points.order_by("run", "step", "attempt").values_list("run", "step", "value")[:_POINTS_READ])
    if not rows:
        return
    trial.run = rows[0][0]
    new = list({step: value for run, step, value in rows if run == trial.run}.items())  # the last attempt's counts
    trial.steps = new[-1][0]
    for step, value in new:
        if value is not None:
            trial.value = value
            if trial.best is None or metric.is_better(value, trial.best):
                trial.best, trial.best_step = value, step
    kept = thin([Point(step, 0.0, value) for step, value in (*trial.curve, *new)], POINTS_KEPT)
    trial.curve = [[one.step, one.value] for one in kept]
