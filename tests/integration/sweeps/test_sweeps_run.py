"""Sweeps from their creation to their end: which jobs are launched, when, how often, and with whose rights."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from apps.accounts.services import user_change
from apps.audit.models import AuditEvent
from apps.dispatch.turns import in_turn
from apps.errors import Conflict, Forbidden, Invalid, TooMany
from apps.jobs.checking import NeverFits
from apps.jobs.models import Job, ScalarPoint
from apps.namespaces.models import Membership, Namespace, Quota, Role
from apps.namespaces.services import team_create
from apps.notifications.happenings import happenings_note
from apps.notifications.models import Announcement, MailChoices, Notice
from apps.sweeps import services, worker
from apps.sweeps.in_use import _of_sweeps
from apps.sweeps.models import Sweep, SweepTrial
from apps.sweeps.readings import trials_read
from apps.sweeps.selectors import standing
from apps.sweeps.services import sweep_create, sweep_delete, sweep_pause, sweep_resume, sweep_stop
from apps.webhooks.models import Delivery
from apps.webhooks.services import webhook_create
from tests.integration.sweeps.conftest import PLAN
from yardmaster.errors import SpecRejected
from yardmaster.outgoing.chat import headline, written
from yardmaster.sweeps.plan import Metric

pytestmark = pytest.mark.django_db


def test_trials_are_jobs_with_their_values_a_few_at_once(make):
    swept = make()
    swept.look()
    assert swept.states() == ["active", "active", "waiting"]
    assert [swept.job(n).name for n in (1, 2)] == ["digits-001", "digits-002"]
    assert swept.job(2).spec["arguments"] == ["--lr=0.01"]
    swept.look(3)
    assert Job.objects.count() == 2
    swept.ends(1)
    swept.look(2)
    assert swept.states() == ["succeeded", "active", "active"]


def test_a_sweep_ends_with_its_best_trial_and_one_mail(make, ada):
    MailChoices.objects.create(user=ada, on_success=True)
    swept = make()
    swept.look()
    swept.reports(1, 0.9, 0.5, 0.6)
    swept.reports(2, 0.9, 0.3, None)
    swept.ends(1)
    swept.ends(2)
    swept.look(2)
    swept.reports(3, 0.8)
    swept.ends(3)
    sweep = swept.look(2)
    assert (sweep.state, sweep.next_look_at) == ("ended", None)
    first, second = swept.trial(1), swept.trial(2)
    assert (first.best, first.best_step, first.value, first.steps) == (0.5, 2, 0.6, 3)
    assert (second.best, second.value, second.steps, second.curve[-1]) == (0.3, 0.3, 3, [3, None])
    best = standing(sweep).best
    assert best is not None
    assert best.number == 2
    mail = Announcement.objects.get(user=ada)
    assert "The best loss is 0.3, of trial 2: lr = 0.01." in mail.body
    from apps.notifications.services import verdicts_note

    verdicts_note()
    assert not Notice.objects.exists()
    assert AuditEvent.objects.filter(action="sweep.end").count() == 1


def heard(webhook, event: str) -> dict:
    """What one webhook is sent of one event, once."""
    happenings_note()
    happenings_note()
    return Delivery.objects.get(webhook=webhook, event=event).body


def test_a_webhook_hears_of_a_sweeps_end_with_its_best_trial(make, ada):
    url = "https://hooks.example.org/x"
    webhook, _ = webhook_create(namespace=ada.personal_namespace, actor=ada, url=url, events=["sweep.ended"])
    swept = make(parameters={"lr": [0.1, 0.01]})
    swept.look()
    swept.reports(1, 0.9, 0.5)
    swept.reports(2, 0.9, 0.3, 0.4)
    swept.ends(1)
    swept.ends(2)
    swept.look(2)
    body = heard(webhook, "sweep.ended")
    told = body["sweep"]
    assert (told["name"], told["owner"], told["trials"], told["counts"]) == ("digits", "ada", 2, {"succeeded": 2})
    assert told["best"] == {
        "trial": 2, "metric": "loss", "value": 0.3, "step": 2, "parameters": {"lr": 0.01}, "job": str(swept.job(2).pk),
    }  # fmt: skip
    assert told["url"].endswith(f"/sweeps/{swept.sweep.pk}/")
    assert headline(body) == "Sweep ended: digits in ada"
    assert told["url"] in str(written("slack", body))


def test_a_webhook_hears_of_a_sweep_without_an_owner_or_a_best(make, ada):
    url = "https://hooks.example.org/x"
    webhook, _ = webhook_create(namespace=ada.personal_namespace, actor=ada, url=url, events=["sweep.ended"])
    swept = make()
    swept.look()
    sweep_stop(user=ada, sweep=swept.sweep)
    Sweep.objects.update(owner=None)
    swept.look(4)
    told = heard(webhook, "sweep.ended")["sweep"]
    assert (told["owner"], told["best"]) == ("", None)


@pytest.mark.parametrize("cut_off_at", ["_launched", "job_launch"])
def test_a_launch_that_is_cut_off_is_found_again_and_made_once(make, monkeypatch, cut_off_at):
    swept = make(parallel=1)
    whole = getattr(worker, cut_off_at)

    def cut_off(*args, **named):
        if cut_off_at == "job_launch":
            whole(*args, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(worker, cut_off_at, cut_off)
        with pytest.raises(KeyboardInterrupt):
            swept.look()
    assert Job.objects.count() == 1
    assert swept.states()[0] == "waiting"
    swept.look(2)
    assert Job.objects.count() == 1
    assert swept.job(1).request_key == swept.trial(1).request_key


def test_a_sweep_that_is_stopped_between_a_launch_and_its_row_leaves_no_job_running(make, monkeypatch, ada):
    swept = make(parallel=1)
    with monkeypatch.context() as patch:
        patch.setattr(worker, "_launched", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            swept.look()
    sweep_stop(user=ada, sweep=swept.sweep)
    swept.look(2)
    swept.world.passes(120)
    assert swept.look(2).state == "ended"
    assert Job.objects.get().phase == "STOPPED"


def test_two_workers_do_not_look_at_once(make):
    swept = make()
    worker.sweep_look(swept.sweep.pk)
    worker.sweep_look(swept.sweep.pk)  # not due yet
    assert Job.objects.count() == 2


def test_a_full_queue_is_waited_for_and_said(make, ada):
    Quota.objects.filter(namespace__owner=ada).update(queued_jobs=1, cpu=1)
    swept = make(parallel=3)
    sweep = swept.look(2)
    assert "queued" in sweep.waiting
    assert sweep.state == "running"
    assert Job.objects.count() < 3
    Quota.objects.filter(namespace__owner=ada).update(queued_jobs=None, cpu=None)
    sweep = swept.look(2)
    assert (sweep.waiting, Job.objects.count()) == ("", 3)


def test_no_code_is_read_for_a_job_that_finds_the_queue_full(make, ada, monkeypatch):
    """A sweep asks again and again, and to read code takes seconds of a worker."""
    Quota.objects.filter(namespace__owner=ada).update(queued_jobs=0)
    read = []
    monkeypatch.setattr("apps.jobs.services.launch_checked", lambda *args: read.append(args))
    assert "queued" in make(parallel=3).look(2).waiting
    assert read == []


def test_a_look_that_launches_for_long_leaves_the_rest_to_the_next(make, monkeypatch):
    """Its lease must not end meanwhile, and other sweeps wait."""
    swept, now = make(parallel=3), timezone.now()
    launch = worker._job_of

    def slow(sweep, trial):
        nonlocal now
        now += worker.LONGEST_LAUNCHES * 0.6
        return launch(sweep, trial)

    monkeypatch.setattr(worker, "_job_of", slow)
    worker.sweep_look(swept.sweep.pk, clock=lambda: now)
    assert Job.objects.count() == 2
    now += timedelta(hours=1)
    worker.sweep_look(swept.sweep.pk, clock=lambda: now)
    assert Job.objects.count() == 3


def test_trials_of_a_sweep_that_is_paused_for_long_are_kept_no_longer_than_others(make, ada):
    swept = make(parallel=1)
    swept.look()
    swept.ends(1)
    swept.look()
    sweep_pause(user=ada, sweep=swept.sweep)
    used = (_of_sweeps(), _of_sweeps([swept.job(1).pk]))
    assert all(swept.job(1).pk in found for found in used)
    SweepTrial.objects.filter(number=1).update(ended_at=timezone.now() - timedelta(days=31))
    assert not any(swept.job(1).pk in found.all() for found in used)
    sweep_resume(user=ada, sweep=swept.sweep)
    assert swept.job(1).pk in _of_sweeps()


def test_owners_rights_count_at_each_launch(make, ada, bob, admin):
    team = team_create(slug="vision", title="", actor=admin, manager=bob)
    member = Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER)
    swept = make(namespace=team, parallel=1)
    swept.look()
    member.role = Role.VIEWER
    member.save()
    swept.ends(1)
    sweep = swept.look(2)
    assert sweep.state == "paused"
    assert "role member" in sweep.reason
    assert Job.objects.count() == 1
    member.role = Role.MEMBER
    member.save()
    sweep_resume(user=bob, sweep=sweep)
    assert swept.look(2).state == "running"
    assert swept.job(2).owner == ada


def test_a_locked_owner_launches_no_more(make, ada, admin):
    swept = make(parallel=1)
    user_change(user=ada, actor=admin, is_active=False)
    sweep = swept.look()
    assert sweep.state == "paused"
    assert "locked" in sweep.reason
    assert not Job.objects.exists()


def test_failures_in_a_row_pause_it_until_it_is_resumed(make, ada):
    swept = make(parallel=1, stop_after_failures=2, parameters={"lr": "1..5"})
    for number in (1, 2):
        swept.look()
        swept.ends(number, well=False)
    sweep = swept.look(2)
    assert swept.states()[:3] == ["failed", "failed", "waiting"]
    assert (sweep.state, sweep.reason) == ("paused", "2 trials in a row have failed.")
    sweep_resume(user=ada, sweep=sweep)
    Sweep.objects.update(failures_from=swept.world.now)  # the jobs' clock is the test's
    assert swept.look().state == "running"
    assert swept.states()[2] == "active"


def test_trials_without_hope_are_stopped_early_and_make_room(make):
    early = {"rule": "halving", "min_steps": 3, "factor": 3}
    swept = make(parallel=3, parameters={"lr": "1..4"}, early_stop=early)
    swept.look()
    for number in (1, 2, 3):
        swept.reports(number, number, number, number)
    swept.look(2)
    swept.world.passes(120)
    swept.look(2)
    assert swept.states() == ["active", "stopped_early", "stopped_early", "active"]
    assert "number 3 of 3" in swept.trial(3).stop_reason
    assert swept.job(3).phase == "STOPPED"
    assert swept.trial(3).best == 3  # what it came to is kept


def test_a_target_that_is_reached_stops_the_rest(make):
    swept = make(metric={"tag": "acc", "goal": "maximize", "target": 0.9})
    swept.look()
    swept.reports(1, 0.5, 0.95, tag="acc")
    sweep = swept.look()
    assert (sweep.state, sweep.reason) == ("stopping", "Trial 1 has reached acc 0.95.")
    swept.world.passes(120)
    sweep = swept.look(3)
    assert (sweep.state, sweep.reason) == ("ended", "Trial 1 has reached acc 0.95.")
    assert swept.states() == ["stopped", "stopped", "waiting"]


def test_pausing_lets_run_what_runs(make, ada):
    swept = make(parallel=1)
    swept.look()
    sweep_pause(user=ada, sweep=swept.sweep)
    swept.ends(1)
    assert swept.look(2).state == "paused"
    assert swept.states() == ["succeeded", "waiting", "waiting"]
    actions = set(AuditEvent.objects.filter(subject=f"sweep:{swept.sweep.pk}").values_list("action", flat=True))
    assert actions == {"sweep.create", "sweep.pause"}


def test_stopping_stops_its_jobs_and_it_cannot_be_resumed(make, ada):
    swept = make()
    swept.look()
    sweep_stop(user=ada, sweep=swept.sweep)
    assert {job.wanted for job in Job.objects.all()} == {"STOP"}
    swept.world.passes(120)
    sweep = swept.look(2)
    assert (sweep.state, swept.states()) == ("ended", ["stopped", "stopped", "waiting"])
    with pytest.raises(Conflict):
        sweep_resume(user=ada, sweep=sweep)


@pytest.mark.parametrize("with_jobs", [True, False])
def test_deleting_keeps_or_deletes_its_jobs(make, ada, with_jobs):
    swept = make()
    swept.look()
    with pytest.raises(Conflict, match="not ended"):
        sweep_delete(user=ada, sweep=swept.sweep, with_jobs=with_jobs)
    sweep_stop(user=ada, sweep=swept.sweep)
    swept.world.passes(120)
    sweep_delete(user=ada, sweep=swept.look(2), with_jobs=with_jobs)
    assert not Sweep.objects.exists()
    assert not SweepTrial.objects.exists()
    assert Job.objects.filter(deleted_at__isnull=True).count() == (0 if with_jobs else 2)


def test_a_trial_outlives_its_job(make, ada):
    from apps.jobs.services import job_delete

    swept = make()
    swept.look()
    swept.reports(1, 0.5)
    swept.ends(1)
    swept.look()
    job_delete(user=ada, job=swept.job(1))
    swept.world.passes(60)
    swept.look(2)
    trial = swept.trial(1)
    assert (trial.job, trial.state, trial.best) == (None, "succeeded", 0.5)


def test_viewers_and_strangers_change_nothing(make, ada, bob, admin):
    team = team_create(slug="vision", title="", actor=admin, manager=ada)
    Membership.objects.create(namespace=team, user=bob, role=Role.VIEWER)
    swept = make(namespace=team)
    for action in (sweep_pause, sweep_stop):
        with pytest.raises(Forbidden):
            action(user=bob, sweep=swept.sweep)
    with pytest.raises(Forbidden):
        sweep_create(user=bob, namespace=team, base=swept.sweep.base, plan=PLAN)


def test_what_is_wrong_with_the_job_or_the_plan_is_said_before_anything_is_made(make, base, ada, settings):
    with pytest.raises(SpecRejected):
        make(spec=base | {"strategy": "none"})
    with pytest.raises(Invalid, match="parameters"):
        make(parameters={})
    with pytest.raises(Invalid, match="combinations"):
        make(parameters={"a": "1..100", "b": "1..11"})
    with pytest.raises(Invalid, match="name"):
        make(spec=base | {"name": "x" * 151})
    with pytest.raises(NeverFits):
        make(spec=base | {"roles": {"worker": {"replicas": 1, "cpu": 4_000, "memory": "1Gi"}}})
    assert not Sweep.objects.exists()


def test_a_namespace_has_so_many_sweeps(make, settings):
    from dataclasses import replace

    settings.YARDMASTER_SWEEPS = replace(settings.YARDMASTER_SWEEPS, per_namespace=1)
    make()
    with pytest.raises(Conflict, match="as many as it may"):
        make()


def test_the_same_request_makes_one(world, ada, base):
    namespace = Namespace.objects.get(owner=ada)
    ids = {
        sweep_create(user=ada, namespace=namespace, base=base, plan=PLAN, request_key="same")[0].pk for _ in range(2)
    }
    assert len(ids) == 1


def test_sweeps_go_with_their_namespace(make, ada, admin):
    team = team_create(slug="vision", title="", actor=admin, manager=ada)
    make(namespace=team)
    team.delete()
    assert not Sweep.objects.exists()
    assert not SweepTrial.objects.exists()


def test_a_closed_namespace_launches_nothing(make, ada):
    swept = make()
    Namespace.objects.filter(owner=ada).update(closed_at=timezone.now())
    assert swept.look().state == "paused"
    assert not Job.objects.exists()


def point(job: Job, attempt: int, step: int, value: float) -> None:
    ScalarPoint.objects.create(job=job, attempt=attempt, run="train", tag="loss", step=step, time=step, value=value)


def test_an_attempt_that_resumes_continues_the_curve_and_one_that_starts_again_does_not(make):
    swept = make(parallel=1)
    swept.look()
    swept.reports(1, 0.9, 0.2, 0.4)
    swept.look()
    job = swept.job(1)

    def read() -> SweepTrial:
        trial = swept.trial(1)
        trials_read([trial], Metric("loss"), swept.world.now)
        return swept.trial(1)

    Job.objects.filter(pk=job.pk).update(attempt=2, resumes_from=1)
    point(job, 2, 3, 0.5)
    point(job, 2, 4, 0.3)
    trial = read()
    assert (trial.attempt, trial.best, trial.best_step, trial.steps) == (2, 0.2, 2, 4)
    SweepTrial.objects.filter(pk=trial.pk).update(attempt=0)  # read all of it again
    assert read().curve == [[1, 0.9], [2, 0.2], [3, 0.5], [4, 0.3]]
    Job.objects.filter(pk=job.pk).update(attempt=3, resumes_from=3)
    point(job, 3, 1, 0.8)
    assert read().curve == [[1, 0.8]]


def test_a_paused_sweep_of_which_nothing_runs_is_looked_at_no_more(make, ada):
    swept = make(parallel=1)
    swept.look()
    sweep_pause(user=ada, sweep=swept.sweep)
    assert swept.look().next_look_at is not None, "a trial of it runs"
    swept.ends(1)
    assert swept.look(2).next_look_at is None
    sweep_resume(user=ada, sweep=swept.sweep)
    assert swept.look().next_look_at is not None
    assert swept.states() == ["succeeded", "active", "waiting"]


def test_looks_that_take_long_come_less_often(make):
    swept = make()
    begun = timezone.now()
    times = iter([begun, *[begun + timedelta(seconds=6)] * 20])
    worker.sweep_look(swept.sweep.pk, clock=lambda: next(times))
    swept.sweep.refresh_from_db()
    assert swept.sweep.next_look_at == begun + timedelta(seconds=6 + 20 * 6)


def test_namespaces_take_turns():
    a, b, first, second, third, fourth = (UUID(int=number) for number in range(6))
    assert in_turn([(first, a), (second, a), (third, a), (fourth, b)]) == [first, fourth, second, third]


def test_sweeps_are_bounded_in_rate_number_and_size(make, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(services, "MOST_BYTES", 1_000)
        make(parameters={"a": ["x" * 100]})
        with pytest.raises(Invalid, match="all trials together"):
            make(parameters={"a": [f"{number}" + "x" * 100 for number in range(10)]})
    with monkeypatch.context() as patch:
        patch.setattr(services, "MOST_KEPT", 2)
        make()
        Sweep.objects.update(state="ended")
        with pytest.raises(Conflict, match="as many as are kept"):
            make()
    with monkeypatch.context() as patch:
        patch.setattr(services, "CREATIONS", 1)
        with pytest.raises(TooMany):
            make()
