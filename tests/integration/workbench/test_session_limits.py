"""What a session must not do: start after its stop, lose its limit or the reason of a refusal, run for ever, or leave
rows without bound."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.errors import Conflict, QuotaExceeded
from apps.hosting import services as hosting
from apps.jobs.models import Job
from apps.namespaces.models import Membership, Role
from apps.workbench import chosen, services
from apps.workbench.admission import _use_of
from apps.workbench.models import WorkbenchSession
from apps.workbench.worker import _start_again, sessions_sweep
from tests.integration.workbench.conftest import changed, over, ready

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


def test_a_restart_keeps_the_idle_limit(ada, board):
    services.session_extend(user=ada, session=ready(board), idle_limit=timedelta(hours=5))
    services.session_restart(user=ada, session=changed(board))
    over(board)
    assert sessions_sweep(timezone.now()) == 1
    assert changed(board).idle_limit == timedelta(hours=5)
    over(board)
    assert services.session_restart(user=ada, session=changed(board)).idle_limit == timedelta(hours=5)


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
