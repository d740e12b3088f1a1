"""What Jupyters keep: charged to the storage of the namespace, measured, deleted by those who may, and said."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from apps.audit.models import AuditEvent
from apps.errors import Conflict, QuotaExceeded
from apps.hosting import services as hosting
from apps.jobs.models import Job
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import member_remove, team_create
from apps.workbench import services
from apps.workbench.home_keeping import home_keep, homes_sweep
from apps.workbench.models import Home
from tests.integration.workbench.conftest import changed, jupyter_of, over, ready
from tests.integration.workbench.homes import GIB, home_world, limited, look, used
from yardmaster.errors import SpecRejected, Unavailable

__all__ = ["home_world"]

SESSIONS = "/api/v1/sessions/"


@pytest.fixture
def world(home_world):
    return home_world


@pytest.fixture
def engine(world):
    return world.engine


@pytest.fixture
def other(bob, signed_in):
    return signed_in(bob)


def files(client, session):
    return client.get(f"{SESSIONS}{session.pk}/").json()["files"]


def delete(client, session):
    return client.delete(f"{SESSIONS}{session.pk}/files/")


def filled(engine, user, size, namespace=None) -> None:
    engine.homes[(namespace or user.personal_namespace).pk, user.pk] = size


# --- what an engine reserves -----------------------------------------------------------------------------------------


def test_the_first_start_reserves_the_home_and_a_later_one_nothing_more(engine, ada, me, mine):
    engine.reserved = 2 * GIB
    limited(mine, 3 * GIB)
    session = jupyter_of(ada)
    assert used(mine) == 2 * GIB
    assert files(me, session) == {"size": 2 * GIB, "reserved": True, "deleting": False, "message": ""}
    engine.reserved = 8 * GIB
    over(session)
    jupyter_of(ada)
    assert used(mine) == 2 * GIB
    homes_sweep(timezone.now() + timedelta(days=1))
    assert Home.objects.get().next_look_at is None, "nothing changes there"


def test_a_start_that_does_not_fit_is_refused_with_the_numbers(engine, me, mine):
    engine.reserved = 2 * GIB
    limited(mine, GIB)
    answer = me.post(SESSIONS, {"kind": "jupyter"}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "quota_full")
    assert "2 GiB of storage" in answer.json()["detail"]
    assert not Job.objects.exists()
    assert not Home.objects.exists()
    assert me.post(SESSIONS, {"kind": "tensorboard"}, format="json").status_code == 201


def test_a_start_that_fails_returns_the_storage_of_a_new_home_alone(engine, ada, mine, monkeypatch):
    engine.reserved = GIB

    def refuses(*args, **options):
        raise SpecRejected([])

    with monkeypatch.context() as now:
        now.setattr(services.hosting, "start", refuses)
        with pytest.raises(SpecRejected):
            jupyter_of(ada)
    assert (used(mine), Home.objects.count()) == (0, 0)
    over(jupyter_of(ada))
    with monkeypatch.context() as now:
        now.setattr(services.hosting, "start", refuses)
        with pytest.raises(SpecRejected):
            jupyter_of(ada)
    assert (used(mine), Home.objects.count()) == (GIB, 1)


def test_an_engine_whose_operator_wants_no_homes_has_none(engine, ada, me, mine):
    engine.reserved = None
    assert files(me, jupyter_of(ada)) is None
    homes_sweep(timezone.now())
    assert not Home.objects.exists()


# --- what is measured ------------------------------------------------------------------------------------------------


def test_a_home_is_measured_while_it_is_used_and_once_after(engine, ada, me, mine):
    session = ready(jupyter_of(ada))
    for size in (GIB, 3 * GIB, 2 * GIB):
        filled(engine, ada, size)
        look(ada)
        assert used(mine) == size
    assert files(me, session)["size"] == 2 * GIB
    assert Home.objects.get().next_look_at > timezone.now()
    over(session)
    filled(engine, ada, GIB)
    look(ada)
    assert (used(mine), Home.objects.get().next_look_at) == (GIB, None)
    ready(jupyter_of(ada))
    assert homes_sweep(timezone.now()) == 1, "a session runs there again"


def test_a_full_namespace_says_so_starts_no_jupyter_and_stops_none(engine, ada, me, mine):
    session = ready(jupyter_of(ada))
    limited(mine, GIB)
    filled(engine, ada, 3 * GIB)
    look(ada)
    assert me.get(f"{SESSIONS}{session.pk}/").json()["state"] == "ready"
    assert "2 GiB more than its storage quota" in files(me, session)["message"]
    assert "2 GiB more than its storage quota" in me.get(f"/sessions/{session.pk}/").content.decode()
    over(session)
    with pytest.raises(QuotaExceeded, match="more than its storage quota") as refused:
        jupyter_of(ada)
    assert "files of a Jupyter" in refused.value.remedy
    filled(engine, ada, GIB // 2)
    look(ada)
    assert jupyter_of(ada).pk == session.pk


def test_an_engine_that_is_away_keeps_what_was_measured(engine, ada, mine, monkeypatch):
    ready(jupyter_of(ada))
    filled(engine, ada, GIB)
    look(ada)

    def away(*ids):
        raise Unavailable("It is away.", remedy="Wait.")

    monkeypatch.setattr(engine, "home_use", away)
    look(ada)
    home = Home.objects.get()
    assert (home.size, used(mine), home.message) == (GIB, GIB, "It is away. Wait.")
    assert home.next_look_at > timezone.now()


def test_sessions_from_before_an_upgrade_get_a_home(engine, ada, mine):
    engine.reserved = GIB
    limited(mine, GIB // 2)
    engine.reserved, later = None, engine.reserved
    ready(jupyter_of(ada))
    engine.reserved = later
    homes_sweep(timezone.now())
    assert (Home.objects.get().size, used(mine)) == (GIB, GIB)
    homes_sweep(timezone.now())
    assert used(mine) == GIB


def test_the_folder_of_the_local_engine_is_measured_and_removed(db, settings, stores, ada, me, mine, tmp_path: Path):
    options = {"root": tmp_path, "workbench_python": sys.executable}
    settings.YARDMASTER_ENGINES = {
        "local": {"class": "yardmaster.engines.local.engine.LocalEngine", "options": options}
    }
    settings.YARDMASTER_DEFAULT_ENGINE, settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL = "local", True
    session = jupyter_of(ada)
    folder = tmp_path / "workbench" / str(mine.pk) / str(ada.pk)
    folder.mkdir(parents=True)
    (folder / "notebook").write_bytes(bytes(range(256)) * 4096)
    look(ada)
    assert used(mine) >= 1 << 20
    over(session)
    assert delete(me, session).status_code == 204
    look(ada)
    assert (used(mine), folder.exists(), files(me, session)) == (0, False, None)


# --- deleting --------------------------------------------------------------------------------------------------------


def test_the_owner_deletes_the_files_of_a_stopped_session(engine, ada, me, mine):
    session = ready(jupyter_of(ada))
    filled(engine, ada, GIB)
    look(ada)
    refused = delete(me, session)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_stopped")
    over(session)
    assert delete(me, session).status_code == 204
    assert files(me, session)["deleting"]
    with pytest.raises(Conflict, match="are being deleted"):
        jupyter_of(ada)
    assert delete(me, session).status_code == 204
    look(ada)
    assert (used(mine), engine.homes, files(me, session)) == (0, {}, None)
    event = AuditEvent.objects.get(action="workbench.delete_files")
    assert (event.actor_id, event.facts["size"], event.facts["owner"]) == (ada.pk, GIB, "ada")
    jupyter_of(ada)


def test_the_quota_is_returned_when_the_engine_says_that_they_are_gone(engine, ada, me, mine):
    engine.reserved = GIB
    session = over(jupyter_of(ada))
    engine.held.add(ada.pk)
    delete(me, session)
    look(ada)
    assert used(mine) == GIB
    assert "not removed all of it yet" in files(me, session)["message"]
    engine.held.clear()
    look(ada)
    assert used(mine) == 0
    home_keep(session.pk)  # of one that is gone


def test_files_go_when_the_last_of_the_session_has_gone(engine, ada, me, mine):
    session = ready(jupyter_of(ada))
    filled(engine, ada, GIB)
    look(ada)
    Job.objects.filter(pk=session.job_id).update(phase="STOPPED")
    assert delete(me, session).status_code == 204, "its page says that it is stopped"
    look(ada)
    assert (engine.homes != {}, files(me, session)["message"]) == (
        True, "The files are being deleted. Its session is still stopping."
    )  # fmt: skip
    over(session)
    look(ada)
    assert (engine.homes, used(mine)) == ({}, 0)


@pytest.mark.parametrize("is_gone", [False, True])
def test_files_that_are_deleted_during_a_start_end_it(engine, ada, me, mine, monkeypatch, is_gone):
    """The start has launched its job and not yet written it down; perhaps the engine has already removed the files."""
    session = over(jupyter_of(ada))
    launched = hosting._launched

    def delete_between(*args):
        job = launched(*args)
        assert delete(me, session).status_code == 204
        if is_gone:
            look(ada)
        return job

    monkeypatch.setattr(hosting, "_launched", delete_between)
    with pytest.raises(Conflict, match="being deleted"):
        services.session_start(user=ada, session=changed(session))
    monkeypatch.undo()
    assert not Job.objects.filter(wanted="RUN", phase="QUEUED").exists()
    assert changed(session).job_id == session.job_id
    look(ada)
    assert services.session_start(user=ada, session=changed(session))[1]


def test_a_deletion_sees_a_start_that_was_written_down_since(engine, ada, mine):
    read = over(jupyter_of(ada))
    services.session_start(user=ada, session=changed(read))
    with pytest.raises(Conflict, match="not stopped"):
        services.files_delete(user=ada, session=read)
    assert not Home.objects.get().goes


def test_a_stranger_and_a_member_delete_nothing(engine, ada, bob, me, other, mine):
    session = over(jupyter_of(ada))
    assert delete(other, session).status_code == 404
    Membership.objects.create(namespace=mine, user=bob, role=Role.MANAGER)
    assert delete(other, session).status_code == 404, "it is its owner's alone"
    board = services.tensorboard_start(user=ada, namespace=mine)[0]
    assert delete(me, board).status_code == 404
    assert not Home.objects.filter(goes=True).exists()


@pytest.mark.parametrize("who", ["ada", "bob", "admin"])
def test_files_of_one_who_left_stay_until_they_or_a_manager_delete_them(engine, ada, bob, admin, signed_in, who):
    engine.reserved = GIB
    team = team_create(slug="vision", title="", manager=bob, actor=admin)
    Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER)
    session = over(jupyter_of(ada, team))
    member_remove(namespace=team, user=ada, actor=bob)
    look(ada)
    assert used(team) == GIB
    client = signed_in({"ada": ada, "bob": bob, "admin": admin}[who])
    shown = client.get("/workbench/" if who == "ada" else "/workbench/?namespace=vision").content.decode()
    assert ("Jupyter of ada" in shown) or who != "ada"
    answer = client.post(f"/sessions/{session.pk}/delete-files/")
    assert answer.status_code == 302
    look(ada)
    assert (used(team), Home.objects.count()) == (0, 0)


def test_the_page_offers_to_delete_the_files_of_a_stopped_session(engine, ada, me):
    session = ready(jupyter_of(ada))
    filled(engine, ada, GIB)
    look(ada)
    page = f"/sessions/{session.pk}/"
    assert "GiB of Jupyters' files" in me.get(f"/namespaces/{ada.personal_namespace.pk}/holders/").content.decode()
    assert "1.0 GiB of the storage quota" in me.get(page).content.decode()
    assert "Delete files" not in me.get(page).content.decode()
    over(session)
    assert "Delete files permanently" in me.get(page).content.decode()
    assert me.post(f"{page}delete-files/")["Location"] == page
    shown = me.get(page).content.decode()
    assert "The files are being deleted." in shown
    assert 'hx-trigger="every 2s"' in shown
    assert "Delete files permanently" not in shown


def test_a_list_of_sessions_asks_for_their_files_at_once(engine, ada, admin, me, django_assert_max_num_queries):
    engine.reserved = GIB
    for n in range(4):
        team = team_create(slug=f"team-{n}", title="", manager=ada, actor=admin)
        jupyter_of(ada, team)
    with django_assert_max_num_queries(12):
        rows = me.get(SESSIONS).json()["results"]
    assert [one["files"]["size"] for one in rows] == [GIB] * 4
