"""Bring sweeps forward, a look at a time: read what their trials came to, stop those without hope, launch the next.

Every step may be repeated. A trial's job is asked for with a key of its own, so that a look that was cut off between
the launch and the trial's row finds that job again and launches no second one. Not here: what is decided
(`yardmaster.sweeps.decision`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.audit.services import record
from apps.dispatch.leases import claim_due, due
from apps.dispatch.turns import in_turn
from apps.errors import Conflict, DomainError, words_of
from apps.jobs.models import Job
from apps.jobs.services import job_launch, job_stop_unused
from apps.jobs.state.specs import asked_spec
from apps.sweeps.announcing import end_announce
from apps.sweeps.models import Sweep, SweepTrial
from apps.sweeps.readings import trials_read
from apps.sweeps.selectors import plan_of
from apps.sweeps.services import trial_name
from yardmaster.errors import YardmasterError
from yardmaster.lifecycle.phases import Wanted
from yardmaster.sweeps.assigning import assigned
from yardmaster.sweeps.decision import Decision, SweepState, Trial, TrialState, decide
from yardmaster.sweeps.plan import Plan, Rule

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]
AT_ONCE = 20
LEASE = timedelta(minutes=2)
SOON, LATER = timedelta(seconds=3), timedelta(seconds=15)
SHARE = 20
"""A sweep whose looks take long is looked at less often: for one part in so many of the time."""
LONGEST_LAUNCHES = timedelta(seconds=10)
"""After which a look launches no further trial; the next one continues. Far shorter than the lease: no second worker
takes a sweep over while one launches."""
WAITS = frozenset({"queue_full", "too_many_queued", "quota_full"})
"""Codes of refusals that may be none a little later."""


def sweeps_sweep(now: datetime) -> int:
    """Look at sweeps that are due, those of all namespaces in turn. Returns how many."""
    rows = due(Sweep.objects.all(), "next_look_at", now).values_list("pk", "namespace_id")[: 10 * AT_ONCE]
    found = in_turn(list(rows))[:AT_ONCE]
    for sweep_id in found:
        try:
            sweep_look(sweep_id)
        except Exception:  # one that cannot be looked at must not hold up the others
            log.exception("The sweep %s could not be looked at", sweep_id)
    return len(found)


def sweep_look(sweep_id: UUID, *, clock: Clock = timezone.now) -> None:
    """One look, by one worker at a time."""
    begun = clock()
    mine = claim_due(Sweep.objects.filter(pk=sweep_id), "next_look_at", begun, LEASE)
    if mine is None:
        return
    sweep = Sweep.objects.select_related("namespace", "owner").get(pk=sweep_id)
    plan = plan_of(sweep)
    _adopt(sweep, clock())
    _read_active(sweep, plan, clock())
    decision = decide(plan, SweepState(sweep.state), _trials(sweep, plan), _failures(sweep))
    _stop(sweep, decision)
    if decision.is_over or decision.finish or decision.pause:
        _move(sweep, decision, clock())
        mine.update(next_look_at=None if decision.is_over else _next(clock(), begun))
        return
    if sweep.state == SweepState.PAUSED.value and not _moves(sweep, clock()):
        mine.update(next_look_at=None)  # until it is resumed or stopped
        return
    waits = _launch(sweep, decision.launch, clock)
    mine.update(next_look_at=_next(clock(), begun, LATER if waits else SOON))


def _next(now: datetime, begun: datetime, least: timedelta = SOON) -> datetime:
    return now + max(least, SHARE * (now - begun))


def _moves(sweep: Sweep, now: datetime) -> bool:
    """Whether a trial of it runs, or may be on its way: one that another worker is launching."""
    on_its_way = Q(state=TrialState.WAITING.value, job=None, launching_at__gt=now - LEASE)
    return sweep.trials.filter(Q(state=TrialState.ACTIVE.value) | on_its_way).exists()


def _adopt(sweep: Sweep, now: datetime) -> None:
    """Find the jobs of launches that were cut off before the trial's row was written."""
    for trial in sweep.trials.filter(state=TrialState.WAITING.value, launching_at__isnull=False, job=None):
        job = Job.objects.for_lists().filter(request_key=trial.request_key).first()
        if job is not None:
            _launched(trial, job, now)


def _launched(trial: SweepTrial, job: Job, now: datetime) -> None:
    waiting = SweepTrial.objects.filter(pk=trial.pk, state=TrialState.WAITING.value)
    waiting.update(job=job, state=TrialState.ACTIVE.value, launched_at=now)


def _active(sweep: Sweep) -> QuerySet[SweepTrial]:
    active = sweep.trials.filter(state=TrialState.ACTIVE.value).select_related("job__namespace")
    return active.defer("job__spec", "job__waiting", "job__note").order_by("number")


def _read_active(sweep: Sweep, plan: Plan, now: datetime) -> None:
    trials_read(list(_active(sweep)), plan.metric, now)


def _trials(sweep: Sweep, plan: Plan) -> list[Trial]:
    """As the decision sees them. Without early stops nothing of a curve matters but its best."""
    names = ["number", "state", "steps", "best", "stop_reason"]
    names += ["curve"] if plan.early_stop.rule is not Rule.NONE else []
    found = []
    for row in sweep.trials.order_by("number").values(*names):
        best = [(row["steps"], row["best"])] if row["best"] is not None else []
        curve = [(step, value) for step, value in row["curve"]] if row.get("curve") else best
        found.append(Trial(row["number"], TrialState(row["state"]), curve, bool(row["stop_reason"])))
    return found


def _failures(sweep: Sweep) -> int:
    """How many of the trials that ended last have failed, in a row, since it was last resumed."""
    ended = sweep.trials.filter(ended_at__gt=sweep.failures_from).order_by("-ended_at", "-number")
    count = 0
    for state in ended.values_list("state", flat=True)[:1_000]:
        if state != TrialState.FAILED.value:
            break
        count += 1
    return count


def _stop(sweep: Sweep, decision: Decision) -> None:
    """Stop trials without hope; of a sweep that ends all that run."""
    ends = bool(decision.finish) or sweep.state == SweepState.STOPPING.value
    reasons = dict(decision.stop)
    for trial in _active(sweep):
        reason = (decision.finish or sweep.reason) if ends else reasons.get(trial.number, "")
        if not reason or trial.job is None or trial.job.wanted != Wanted.RUN.value:
            continue
        with transaction.atomic():
            if not ends:
                SweepTrial.objects.filter(pk=trial.pk, stop_reason="").update(stop_reason=reason[:300])
            job_stop_unused(trial.job, f"The sweep {sweep.name} stopped it: {reason}")


def _move(sweep: Sweep, decision: Decision, now: datetime) -> None:
    """Write that it pauses, stops or is over, unless a person has moved it meanwhile."""
    with transaction.atomic():
        locked = Sweep.objects.select_for_update(no_key=True).filter(pk=sweep.pk, state=sweep.state)
        if locked.first() is None:
            return
        reason = (decision.pause or decision.finish or sweep.reason)[:500]
        if decision.is_over:
            reason = reason if sweep.state == SweepState.STOPPING.value or decision.finish else ""
            locked.update(state=SweepState.ENDED.value, reason=reason, waiting="", ended_at=now)
            _record(sweep, "sweep.end", SweepState.ENDED, reason)
            sweep.refresh_from_db()
            end_announce(sweep, now)
        elif decision.pause:
            locked.update(state=SweepState.PAUSED.value, reason=reason, waiting="")
            _record(sweep, "sweep.pause", SweepState.PAUSED, reason)
        else:
            locked.update(state=SweepState.STOPPING.value, reason=reason, waiting="")
            _record(sweep, "sweep.stop", SweepState.STOPPING, reason)


def _record(sweep: Sweep, action: str, state: SweepState, reason: str) -> None:
    facts = {"name": sweep.name, "state": state.value, "state_before": sweep.state, "reason": reason}
    record(None, action, f"sweep:{sweep.pk}", namespace=sweep.namespace, **facts)


def _launch(sweep: Sweep, numbers: Sequence[int], clock: Clock) -> bool:
    """Launch these trials until one is refused. Returns whether one has to wait."""
    begun = clock()
    for trial in sweep.trials.filter(number__in=numbers).order_by("number"):
        if clock() - begun > LONGEST_LAUNCHES or not _claimed(sweep, trial, clock()):
            return False
        try:
            _launched(trial, _job_of(sweep, trial), clock())
        except (DomainError, YardmasterError) as refusal:
            return _refused(sweep, trial, refusal, clock())
    if numbers and sweep.waiting:
        Sweep.objects.filter(pk=sweep.pk).update(waiting="")
    return False


def _claimed(sweep: Sweep, trial: SweepTrial, now: datetime) -> bool:
    """Write that the trial's job is being asked for, while the sweep is still to run."""
    with transaction.atomic():
        running = Sweep.objects.select_for_update(no_key=True).filter(pk=sweep.pk, state=SweepState.RUNNING.value)
        if running.first() is None:
            return False
        return bool(SweepTrial.objects.filter(pk=trial.pk, state=TrialState.WAITING.value).update(launching_at=now))


def _job_of(sweep: Sweep, trial: SweepTrial) -> Job:
    """Launch its job, with its owner's rights as they are now; launched before: that job."""
    if sweep.owner is None or not sweep.owner.is_active:
        raise Conflict("The account of its owner is locked or was removed.", "owner_gone")
    spec = asked_spec(assigned(sweep.base, trial.values, trial_name(sweep.name, trial.number)))
    job, _ = job_launch(
        user=sweep.owner, namespace=sweep.namespace, spec=spec, engine=sweep.engine, request_key=trial.request_key,
        accept_never_fits=sweep.accept_never_fits,
    )  # fmt: skip
    return job


def _refused(sweep: Sweep, trial: SweepTrial, refusal: DomainError | YardmasterError, now: datetime) -> bool:
    """What may pass is waited for; all else pauses the sweep, and its owner decides."""
    words = f"Trial {trial.number}: {words_of(refusal)}"[:500]
    may_pass = refusal.retryable if isinstance(refusal, YardmasterError) else refusal.code in WAITS
    if may_pass:
        Sweep.objects.filter(pk=sweep.pk, state=SweepState.RUNNING.value).update(waiting=words)
        return True
    _move(sweep, Decision(pause=words), now)
    return False
