"""What a session must not do: start after its stop, lose its limit or the reason of a refusal, run for ever, or leave
rows without bound."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from apps.errors import Conflict, QuotaExceeded
from apps.hosting import services as hosting
from apps.jobs.models import Job
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create
from apps.workbench import chosen, services, worker
from apps.workbench.admission import _use_of
from apps.workbench.models import WorkbenchSession
from apps.workbench.worker import _start_again, sessions_sweep
from tests.integration.workbench.conftest import changed, failed, jupyter_of, over, ready

SESSIONS = "/api/v1/sessions/"


def shown(client, session):
    return client.get(f"{SESSIONS}{session.pk}/").json()


def test_a_stop_calls_off_a_restart_that_the_worker_has_read(ada, board):
    services.session_restart(user=ada, session=ready(board))
    read = over(board)
    services.session_stop(user=ada, session=changed(board))
    assert _start_again(read) is False
    assert changed(board).job_id == read.job_id


def test_each_start_is_restarted_once_however_often_and_late_it_is_asked(ada, me, board):
    first = ready(board)
    stale = changed(board)
    form = f"/sessions/{board.pk}/restart/"
    for _ in range(2):
        me.post(form, {"starts": first.starts, "size": "small"}, format="multipart")
    assert changed(board).starts == first.starts, "a second click calls no start off"
    over(board)
    assert [sessions_sweep(timezone.now()) for _ in range(2)] == [1, 0]
    second = ready(board)
    assert (second.starts, second.again) == (first.starts + 1, None)
    said = me.post(form, {"starts": first.starts, "size": "large"}, format="multipart", follow=True)
    assert "It was started again since this page was loaded" in said.content.decode()
    me.post(f"{SESSIONS}{board.pk}/restart/", {"starts": first.starts, "size": "large"}, format="json")
    services.session_restart(user=ada, session=stale, size="large")  # had read it before the first restart
    found = changed(board)
    assert (found.job_id, found.starts, found.again, found.size) == (second.job_id, second.starts, None, "small")
    assert found.job.wanted == "RUN"
    assert shown(me, board)["starts"] == second.starts
    assert f'name="starts" value="{second.starts}"' in me.get(f"/sessions/{board.pk}/").content.decode()
    me.post(form, {"starts": second.starts, "size": "large"}, format="multipart")
    assert changed(board).job.wanted == "STOP"


def test_a_stop_during_a_start_stops_what_was_launched(ada, board, monkeypatch):
    """The start has launched its job and not yet written it down."""
    launched = hosting._launched

    def stop_between(*args):
        job = launched(*args)
        services.session_stop(user=ada, session=changed(board))
        return job

    over(board)
    monkeypatch.setattr(hosting, "_launched", stop_between)
    _, is_new = services.session_start(user=ada, session=changed(board))
    assert not is_new
    assert not Job.objects.filter(wanted="RUN", phase="QUEUED").exists()
    monkeypatch.undo()
    found, is_new = services.session_start(user=ada, session=changed(board))
    assert is_new
    assert hosting.runs(found.job)


def test_a_stop_finds_the_job_that_a_start_has_written_since(ada, board):
    read = over(board)
    services.session_start(user=ada, session=changed(board))
    services.session_stop(user=ada, session=read)
    assert changed(board).job.wanted == "STOP"


def test_a_start_that_waits_for_the_end_of_the_last_one_keeps_what_it_asked_for(ada, board, monkeypatch):
    asked = []

    def refuses(**facts):
        asked.append(facts)
        raise QuotaExceeded("The namespace has too many jobs.", remedy="Wait.")

    Job.objects.filter(pk=board.job_id).update(wanted="STOP")
    services.session_start(user=ada, session=changed(board), size="large", accept_never_fits=True)
    over(board)
    monkeypatch.setattr(hosting, "job_launch", refuses)
    sessions_sweep(timezone.now())
    assert [one["accept_never_fits"] for one in asked] == [True]


def test_a_refused_restart_says_why_until_the_next_start(me, ada, bob, board):
    seat = Membership.objects.create(namespace=board.namespace, user=bob, role=Role.MEMBER)
    services.session_restart(user=bob, session=ready(board))
    Membership.objects.filter(pk=seat.pk).update(role=Role.VIEWER)
    over(board)
    sessions_sweep(timezone.now())
    assert "not started again. This needs the role member" in shown(me, board)["message"]
    assert "not started again" in me.get(f"/sessions/{board.pk}/").content.decode()
    services.session_start(user=ada, session=changed(board))
    assert changed(board).problem == ""


def test_a_refused_start_keeps_the_reason_and_the_log_of_the_last_end(me, ada, board, monkeypatch):
    failed(board, "Out of memory.", "Take a larger size.")

    def refuses(**facts):
        raise QuotaExceeded("The namespace has too many jobs.", remedy="Wait.")

    monkeypatch.setattr(hosting, "job_launch", refuses)
    with pytest.raises(QuotaExceeded):
        services.session_start(user=ada, session=changed(board))
    assert (shown(me, board)["state"], shown(me, board)["message"]) == ("failed", "Out of memory.")
    last = changed(board).job
    assert last.deleted_at is None
    monkeypatch.undo()
    services.session_start(user=ada, session=changed(board))
    assert Job.objects.get(pk=last.pk).deleted_at is not None


def test_a_restart_keeps_the_idle_limit(ada, board):
    services.session_extend(user=ada, session=ready(board), idle_limit=timedelta(hours=5))
    services.session_restart(user=ada, session=changed(board))
    over(board)
    assert sessions_sweep(timezone.now()) == 1
    assert changed(board).idle_limit == timedelta(hours=5)
    over(board)
    assert services.session_restart(user=ada, session=changed(board)).idle_limit == timedelta(hours=5)


@pytest.mark.parametrize("phase", ["STOPPED", "FAILED"])
def test_a_restart_is_seen_as_one_until_the_start_is_written_down(me, ada, board, monkeypatch, phase):
    services.session_restart(user=ada, session=ready(board))
    over(board, phase)
    launched, seen = hosting._launched, []

    def look_between(*args):
        seen.append(shown(me, board)["restarts"])
        job = launched(*args)
        seen.append(shown(me, board)["restarts"])
        return job

    monkeypatch.setattr(hosting, "_launched", look_between)
    assert sessions_sweep(timezone.now()) == 1
    assert seen == [True, True]
    found = shown(me, board)
    assert (found["state"], found["restarts"]) == ("queued", False)


def test_a_restart_that_was_interrupted_is_tried_in_the_next_sweep(ada, board, monkeypatch):
    services.session_restart(user=ada, session=ready(board))
    over(board)

    def fails(*args):
        raise OperationalError("the database is away")

    monkeypatch.setattr(hosting, "_launched", fails)
    assert sessions_sweep(timezone.now()) == 0
    monkeypatch.undo()
    assert sessions_sweep(timezone.now()) == 1
    assert hosting.runs(changed(board).job)


def test_what_fails_in_a_sweep_does_not_keep_the_rest_from_its_turn(world, ada, board, jupyter, monkeypatch):
    for one in (board, jupyter):
        services.session_restart(user=ada, session=ready(one))
        over(one)
    old = choice(ada.personal_namespace, ada, 1, timedelta(days=31))
    launched = hosting._launched

    def fails_for_one(user, row, *args):
        if row.pk == board.pk:
            raise OperationalError("the database is away")
        return launched(user, row, *args)

    def fails(*args):
        raise OperationalError("the database is away")

    monkeypatch.setattr(hosting, "_launched", fails_for_one)
    for name in ("_stop_longest", "tokens_clean", "entrances_clean"):
        monkeypatch.setattr(worker, name, fails)
    assert sessions_sweep(timezone.now()) == 1
    assert hosting.runs(changed(jupyter).job)
    assert not WorkbenchSession.objects.filter(pk=old.pk).exists()


@pytest.mark.parametrize("role", [Role.VIEWER, None])
def test_a_jupyter_ends_with_its_owners_role_and_a_manager_deletes_its_files_then(world, ada, bob, me, role, signed_in):
    team = team_create(slug="vision", title="Vision", manager=ada, actor=ada)
    seat = Membership.objects.create(namespace=team, user=bob, role=Role.MEMBER)
    session, other = ready(jupyter_of(bob, team)), jupyter_of(bob)
    assert sessions_sweep(timezone.now()) == 0
    Membership.objects.filter(pk=seat.pk).update(role=role) if role else seat.delete()
    assert sessions_sweep(timezone.now()) == 1
    assert changed(session).job.wanted == "STOP"
    assert changed(other).job.wanted == "RUN"
    assert "may no longer start sessions" in over(session).problem
    assert sessions_sweep(timezone.now()) == 0
    services.files_delete(user=bob if role else ada, session=changed(session))


def test_an_administrator_needs_no_role_for_a_jupyter(world, ada, admin):
    jupyter_of(admin, ada.personal_namespace)
    assert sessions_sweep(timezone.now()) == 0


def test_a_take_over_is_of_the_start_that_was_looked_at(admin, jupyter):
    read = ready(jupyter)
    services.session_stop(user=jupyter.owner, session=changed(jupyter))
    over(jupyter)
    services.session_start(user=jupyter.owner, session=changed(jupyter))
    with pytest.raises(Conflict, match="in the meantime"):
        services.session_take_over(user=admin, session=read)
    assert changed(jupyter).taken_over_by is None


def test_of_starts_at_once_the_one_too_many_is_stopped(ada, jupyter, board, settings):
    settings.YARDMASTER_WORKBENCH = settings.YARDMASTER_WORKBENCH | {"SESSIONS": 1}
    with pytest.raises(QuotaExceeded, match="1 sessions"):
        services._stop_one_too_many(ada, board)
    services._stop_one_too_many(ada, jupyter)
    assert changed(board).job.wanted == "STOP"
    assert changed(jupyter).job.wanted == "RUN"


@pytest.mark.parametrize("asked", [{"size": "nope"}, {"idle_limit": 1}, {"engine": "nope"}])
def test_a_refused_start_leaves_no_row(world, ada, me, asked):
    jobs = [str(world.launch(ada).pk)]
    for about in ({"kind": "jupyter"}, {"kind": "tensorboard"}, {"kind": "tensorboard", "jobs": jobs}):
        assert me.post(SESSIONS, about | asked, format="json").status_code >= 400
    assert not WorkbenchSession.objects.exists()


def choice(namespace, user, number, age):
    return WorkbenchSession.objects.create(
        namespace=namespace, kind="tensorboard", subject=f"jobs:{number}", owner=user, idle_seconds=60,
        job_ids=[str(uuid.uuid4())], started_at=timezone.now() - age,
    )  # fmt: skip


def test_a_namespace_has_so_many_choices_and_the_oldest_stopped_one_goes(world, ada, mine, monkeypatch):
    monkeypatch.setattr(chosen, "MOST", 3)
    job = world.launch(ada)
    runs, _ = services.tensorboard_start(user=ada, namespace=mine, job_ids=[job.pk])
    changed(runs, started_at=timezone.now() - timedelta(days=9))
    older, newer = choice(mine, ada, 1, timedelta(days=2)), choice(mine, ada, 2, timedelta(days=1))
    services.tensorboard_start(user=ada, namespace=mine, job_ids=[world.launch(ada).pk])
    kept = set(WorkbenchSession.objects.values_list("pk", flat=True))
    assert {runs.pk, newer.pk} < kept
    assert older.pk not in kept
    services.tensorboard_start(user=ada, namespace=mine, job_ids=[world.launch(ada).pk])
    with pytest.raises(QuotaExceeded, match="all of them run"):
        services.tensorboard_start(user=ada, namespace=mine, job_ids=[world.launch(ada).pk])


def test_choices_go_30_days_after_their_last_start_with_their_jobs(world, ada, mine, board, jupyter):
    first, second = world.launch(ada), world.launch(ada)
    runs, _ = services.tensorboard_start(user=ada, namespace=mine, job_ids=[first.pk])
    stopped, _ = services.tensorboard_start(user=ada, namespace=mine, job_ids=[first.pk, second.pk])
    fresh = choice(mine, ada, 1, timedelta(days=29))
    for one in (stopped, board, jupyter):
        over(one)
    WorkbenchSession.objects.exclude(pk=fresh.pk).update(started_at=timezone.now() - timedelta(days=31))
    sessions_sweep(timezone.now())
    kept = set(WorkbenchSession.objects.values_list("pk", flat=True))
    assert kept == {runs.pk, fresh.pk, board.pk, jupyter.pk}
    assert Job.objects.get(pk=stopped.job_id).deleted_at is not None
    assert Job.objects.get(pk=first.pk).deleted_at is None


def test_a_choice_that_was_started_since_it_was_read_stays(world, ada, mine):
    session, _ = services.tensorboard_start(user=ada, namespace=mine, job_ids=[world.launch(ada).pk])
    read = over(session)
    services.session_start(user=ada, session=changed(session))
    chosen._remove(read)
    assert hosting.runs(changed(session).job)


def test_a_choice_that_is_removed_during_its_start_leaves_no_job(world, ada, mine, monkeypatch):
    session, _ = services.tensorboard_start(user=ada, namespace=mine, job_ids=[world.launch(ada).pk])
    read = over(session)
    launched, made = hosting._launched, []

    def remove_between(*args):
        made.append(launched(*args))
        chosen._remove(changed(session))
        return made[0]

    monkeypatch.setattr(hosting, "_launched", remove_between)
    with pytest.raises(Conflict, match="was removed"):
        services.session_start(user=ada, session=read)
    assert Job.objects.get(pk=made[0].pk).wanted == "STOP"


def test_what_a_viewer_asks_is_no_use():
    for role in (Role.VIEWER, None):
        assert not _use_of("tensorboard", role)("GET", "/w/1/data/runs")
    assert _use_of("tensorboard", Role.MEMBER)("GET", "/w/1/data/runs")
    assert _use_of("jupyter", Role.MANAGER)("PUT", "/w/1/api/contents/a")


def test_a_session_that_is_used_is_stopped_after_its_longest_life(me, ada, board, settings):
    ready(board, last_used_at=timezone.now())
    longest = settings.YARDMASTER_WORKBENCH["LONGEST"]
    assert longest == timedelta(days=7)
    Job.objects.filter(pk=board.job_id).update(started_at=timezone.now() - longest + timedelta(minutes=1))
    assert sessions_sweep(timezone.now()) == 0
    Job.objects.filter(pk=board.job_id).update(started_at=timezone.now() - longest)
    assert sessions_sweep(timezone.now()) == 1
    assert shown(me, over(board))["message"] == ("It was stopped after 7d, the longest that a session may run.")
    services.session_start(user=ada, session=changed(board))
    assert shown(me, board)["message"] == ""
