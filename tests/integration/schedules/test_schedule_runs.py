"""What schedules launch: each time once, with the owner's rights of then, and what is refused is kept in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.accounts.models import User
from apps.audit.models import AuditEvent
from apps.code.models import CodeVersion
from apps.dispatch.models import OutboxEvent
from apps.errors import Forbidden
from apps.jobs.models import Job
from apps.jobs.services import job_stop
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.services import team_create
from apps.schedules import templates, worker
from apps.schedules.models import RunState, Schedule, ScheduleRun, TemplateJob
from apps.schedules.services import SCHEDULE_PAUSED, schedule_change, schedule_pause, schedule_resume, schedule_run_now
from apps.schedules.worker import schedules_sweep
from tests.integration.schedules.conftest import schedule_of, template_of

pytestmark = pytest.mark.django_db
NIGHT = datetime(2027, 2, 1, 2, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


def first_at(schedule: Schedule, at: datetime = NIGHT) -> Schedule:
    Schedule.objects.filter(pk=schedule.pk).update(next_at=at)
    schedule.refresh_from_db()
    return schedule


@pytest.fixture
def nightly(world, ada) -> Schedule:
    return first_at(schedule_of(template_of(world, ada), ada, values={"lr": "0.5"}))


def states(schedule: Schedule) -> list[str]:
    return [one.state for one in ScheduleRun.objects.filter(schedule=schedule).order_by("planned_at")]


def end(*jobs: Job) -> None:
    Job.objects.filter(pk__in=[one.pk for one in jobs] or Job.objects.values("pk")).update(
        phase="SUCCEEDED", cleaned_up_at=NIGHT
    )


def test_before_its_time_nothing_happens_and_at_its_time_one_job_is_launched(world, ada, nightly):
    assert schedules_sweep(NIGHT - MINUTE) == 0
    assert schedules_sweep(NIGHT + MINUTE) == 1
    assert schedules_sweep(NIGHT + 2 * MINUTE) == 0, "once"
    job = Job.objects.get()
    assert (job.owner, job.spec["arguments"]) == (ada, ["--lr=0.5", ""])
    origin = TemplateJob.objects.get(job=job)
    assert (origin.schedule, origin.revision) == (nightly, 1)
    run = ScheduleRun.objects.get()
    assert (run.state, run.planned_at, run.job) == (RunState.LAUNCHED, NIGHT, job)
    nightly.refresh_from_db()
    assert nightly.next_at == NIGHT + DAY
    event = AuditEvent.objects.get(action="schedule.launch")
    assert (event.facts["job"], event.facts["planned_at"]) == (str(job.pk), NIGHT.isoformat())


def test_a_crash_after_the_launch_makes_no_second_job(world, ada, nightly, monkeypatch):
    run = worker.times_decide(nightly.pk, NIGHT)

    def dies(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "_launched", dies)
    with pytest.raises(KeyboardInterrupt):
        worker.run_launch(run.pk, NIGHT)
    monkeypatch.undo()
    assert (Job.objects.count(), states(nightly)) == (1, ["waiting"])
    assert schedules_sweep(NIGHT + MINUTE) == 0, "another worker may still have it"
    assert schedules_sweep(NIGHT + 6 * MINUTE) == 1
    assert (Job.objects.count(), states(nightly)) == (1, ["launched"])


def test_a_crash_between_the_decision_and_the_launch_loses_nothing(world, ada, nightly):
    assert worker.times_decide(nightly.pk, NIGHT) is not None
    assert worker.times_decide(nightly.pk, NIGHT) is None, "a second beat decides nothing"
    assert Job.objects.count() == 0
    assert schedules_sweep(NIGHT + MINUTE) == 1


def test_after_a_downtime_one_run_is_made_up_for_and_the_others_are_written(world, ada, nightly):
    assert schedules_sweep(NIGHT + 3 * DAY + 30 * MINUTE) == 1
    assert states(nightly) == ["missed", "launched"]
    missed = ScheduleRun.objects.get(state=RunState.MISSED)
    assert missed.message.startswith("3 times")


def test_beyond_the_grace_nothing_is_launched(world, ada, nightly):
    assert schedules_sweep(NIGHT + 2 * timedelta(hours=1)) == 0
    assert (states(nightly), Job.objects.count()) == (["missed"], 0)


def test_a_time_is_skipped_while_the_earlier_job_goes_on(world, ada, nightly):
    schedules_sweep(NIGHT)
    schedules_sweep(NIGHT + DAY)
    assert states(nightly) == ["launched", "skipped"]
    assert ScheduleRun.objects.get(state=RunState.SKIPPED).code == "still_running"
    end()
    schedules_sweep(NIGHT + 2 * DAY)
    assert states(nightly)[-1] == "launched"


def test_a_time_waits_for_the_earlier_job_where_it_is_to(world, ada, nightly):
    Schedule.objects.update(overlap="queue")
    schedules_sweep(NIGHT)
    schedules_sweep(NIGHT + DAY)
    assert states(nightly) == ["launched", "waiting"]
    schedules_sweep(NIGHT + 2 * DAY)
    assert states(nightly) == ["launched", "waiting", "skipped"], "one waits, no more"
    end()
    assert schedules_sweep(NIGHT + 2 * DAY + MINUTE) == 1
    assert states(nightly) == ["launched", "launched", "skipped"]


def test_the_earlier_job_is_stopped_where_it_is_to(world, ada, nightly):
    Schedule.objects.update(overlap="stop")
    schedules_sweep(NIGHT)
    old = Job.objects.get()
    schedules_sweep(NIGHT + DAY)
    assert world.again(old).wanted == "STOP"
    assert states(nightly) == ["launched", "launched"]


def test_what_is_refused_is_kept_in_words_and_after_a_while_pauses_with_a_notice(world, ada, nightly, settings):
    CodeVersion.objects.all().delete()
    most = settings.YARDMASTER_SCHEDULES.refusals
    for number in range(most):
        assert nightly.paused_at is None
        assert schedules_sweep(NIGHT + number * DAY) == 0
        nightly.refresh_from_db()
    assert states(nightly) == ["refused"] * most
    run = ScheduleRun.objects.first()
    assert (run.code, "was removed" in run.message) == ("spec_rejected", True)
    assert (nightly.pause_code, nightly.next_at) == ("refused", None)
    (event,) = OutboxEvent.objects.filter(topic=SCHEDULE_PAUSED)
    assert (str(event.subject), event.facts["owner"]) == (str(nightly.pk), str(ada.pk))
    assert AuditEvent.objects.filter(action="schedule.refused").count() == most
    assert schedules_sweep(NIGHT + 30 * DAY) == 0
    schedule_resume(user=ada, schedule=nightly)
    assert (nightly.refusals, nightly.paused_at) == (0, None)


def test_a_launch_ends_a_row_of_refusals(world, ada, nightly):
    Schedule.objects.update(refusals=3)
    schedules_sweep(NIGHT)
    nightly.refresh_from_db()
    assert nightly.refusals == 0


def test_a_full_queue_refuses_as_it_refuses_anyone(world, ada, nightly, settings):
    settings.YARDMASTER_QUEUED_JOBS = 1
    world.launch(ada)
    schedules_sweep(NIGHT)
    run = ScheduleRun.objects.get()
    assert (run.state, run.code) == (RunState.REFUSED, "queue_full")


@pytest.fixture
def team(ada, bob) -> Namespace:
    made = team_create(slug="vision", title="", manager=ada, actor=ada)
    Membership.objects.create(namespace=made, user=bob, role=Role.MEMBER)
    return made


@pytest.mark.parametrize(
    ("lose", "code"),
    [(lambda bob, team: Membership.objects.filter(user=bob, namespace=team).delete(), "owner_left"),
     (lambda bob, team: Membership.objects.filter(user=bob, namespace=team).update(role=Role.VIEWER), "owner_left"),
     (lambda bob, team: User.objects.filter(pk=bob.pk).update(is_active=False), "owner_locked"),
     (lambda bob, team: Namespace.objects.filter(pk=team.pk).update(closed_at=NIGHT), "namespace_closed")],
)  # fmt: skip
def test_without_the_rights_of_its_owner_it_pauses_with_a_reason_and_a_notice(world, ada, bob, team, lose, code):
    schedule = first_at(schedule_of(template_of(world, bob, team), bob))
    lose(bob, team)
    assert schedules_sweep(NIGHT) == 0
    schedule.refresh_from_db()
    assert (schedule.pause_code, states(schedule), Job.objects.count()) == (code, ["refused"], 0)
    assert OutboxEvent.objects.filter(topic=SCHEDULE_PAUSED, subject=schedule.pk).count() == 1


def test_who_resumes_what_has_lost_its_owner_becomes_the_owner(world, ada, bob, team):
    schedule = first_at(schedule_of(template_of(world, bob, team), bob))
    Membership.objects.filter(user=bob, namespace=team).delete()
    schedules_sweep(NIGHT)
    schedule.refresh_from_db()
    schedule_resume(user=ada, schedule=schedule)
    assert schedule.owner == ada
    event = AuditEvent.objects.get(action="schedule.resume")
    assert (event.facts["owner_before"], event.facts["owner"]) == ("bob", "ada")


def test_a_removed_user_leaves_the_schedule_paused(world, ada, bob, team):
    schedule = first_at(schedule_of(template_of(world, ada, team), bob))
    Schedule.objects.filter(pk=schedule.pk).update(owner=None)
    schedules_sweep(NIGHT)
    schedule.refresh_from_db()
    assert schedule.pause_code == "owner_gone"


def test_while_paused_nothing_runs_and_what_passed_is_not_made_up_for(world, ada, nightly):
    schedule_pause(user=ada, schedule=nightly)
    assert schedules_sweep(NIGHT + 2 * DAY) == 0
    schedule_resume(user=ada, schedule=nightly)
    assert nightly.next_at is not None
    assert states(nightly) == []


def test_pausing_gives_up_what_waits(world, ada, nightly):
    Schedule.objects.update(overlap="queue")
    schedules_sweep(NIGHT)
    schedules_sweep(NIGHT + DAY)
    schedule_pause(user=ada, schedule=nightly)
    assert states(nightly) == ["launched", "skipped"]


def test_run_now_launches_as_the_user_who_asks(world, ada, bob, team):
    code = world.code_version(ada)
    code.parent.namespace = team
    code.parent.save()
    schedule = first_at(schedule_of(template_of(world, ada, team, spec={"code": str(code.pk)}), ada))
    job = schedule_run_now(user=bob, schedule=schedule)
    run = ScheduleRun.objects.get()
    assert (job.owner, run.asked_by, run.is_asked_for) == (bob, bob, True)
    assert schedules_sweep(NIGHT) == 0, "it still runs, so the time is skipped"
    job_stop(user=bob, job=job)


def test_only_so_many_ended_jobs_are_kept(world, ada, nightly):
    Schedule.objects.update(keeps=2)
    for number in range(4):
        schedules_sweep(NIGHT + number * DAY)
        end()
    assert states(nightly) == ["launched"] * 4
    kept = Job.objects.filter(deleted_at__isnull=True).count()
    assert kept == 3, "two ended ones when the fourth was launched, and that"


def test_the_times_follow_a_change(world, ada, nightly):
    schedule_change(user=ada, schedule=nightly, cron="0 5 * * *", time_zone="Europe/Berlin", overlap="stop")
    assert nightly.next_at.astimezone(UTC).hour in (3, 4)
    event = AuditEvent.objects.get(action="schedule.change")
    assert (event.facts["cron_before"], event.facts["cron"]) == ("0 2 * * *", "0 5 * * *")
    assert "name" not in event.facts


def test_a_schedule_ends_with_its_last_time(world, ada, nightly):
    Schedule.objects.update(ends_at=NIGHT + MINUTE)
    schedules_sweep(NIGHT)
    nightly.refresh_from_db()
    assert (nightly.next_at, nightly.paused_at) == (None, None)


def test_a_crash_between_a_job_and_where_it_came_from_is_made_good(world, ada, nightly, monkeypatch):
    run = worker.times_decide(nightly.pk, NIGHT)

    def dies(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(templates, "origin_keep", dies)
    with pytest.raises(KeyboardInterrupt):
        worker.run_launch(run.pk, NIGHT)
    monkeypatch.undo()
    assert not TemplateJob.objects.exists()
    for later in (6, 12):
        schedules_sweep(NIGHT + later * MINUTE)
    origin = TemplateJob.objects.get()
    assert (origin.job, origin.schedule, origin.template, origin.revision) == (
        Job.objects.get(), nightly, nightly.template, 1,
    )  # fmt: skip
    assert AuditEvent.objects.filter(action="job_template.launch").count() == 1


def test_what_was_launched_while_it_was_paused_is_written_as_launched(world, ada, nightly, monkeypatch):
    run = worker.times_decide(nightly.pk, NIGHT)
    whole = worker.template_launch

    def paused_meanwhile(**said):
        found = whole(**said)
        schedule_pause(user=ada, schedule=nightly)
        return found

    monkeypatch.setattr(worker, "template_launch", paused_meanwhile)
    job = worker.run_launch(run.pk, NIGHT)
    run.refresh_from_db()
    assert (run.state, run.job, run.code) == (RunState.LAUNCHED, job, "")


def test_who_may_not_use_an_engine_changes_and_resumes_nothing_of_who_may(world, admin, bob):
    """Else a member would choose what runs as the portal."""
    team = team_create(slug="vision", title="", manager=admin, actor=admin)
    Membership.objects.create(namespace=team, user=bob, role=Role.MEMBER)
    world.engine.isolates = False
    schedule = schedule_of(template_of(world, admin, team), admin)
    with pytest.raises(Forbidden, match="administrators"):
        schedule_change(user=bob, schedule=schedule, values={"note": "chosen by bob"})
    schedule_pause(user=bob, schedule=schedule)
    with pytest.raises(Forbidden, match="administrators"):
        schedule_resume(user=bob, schedule=schedule)
    schedule.refresh_from_db()
    assert (schedule.values, schedule.paused_at is None) == ({}, False)
    schedule_resume(user=admin, schedule=schedule)
    world.engine.isolates = True
    schedule_change(user=bob, schedule=schedule, values={"note": "x"})
    assert schedule.values == {"note": "x"}
