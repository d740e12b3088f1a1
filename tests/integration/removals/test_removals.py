"""Removing users and namespaces: stopped, archived, let go of by every engine, verified, and what is left is said."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import user_change
from apps.audit.models import AuditEvent
from apps.dispatch.messages import CARRY_OUT_REMOVAL
from apps.jobs.engines.namespaces import engine_namespaces_keep
from apps.jobs.models import Job
from apps.jobs.worker.sweep import sweep
from apps.namespaces.models import EngineNamespace, Membership, Namespace, Role
from apps.namespaces.services import team_create
from apps.removals.models import Data, Removal
from apps.removals.services import namespace_remove, user_remove
from apps.removals.worker import EAGER, LATER, removal_carry_out, removals_sweep
from apps.stores import log_store
from apps.uploads.models import Upload
from apps.uploads.services import uploads_sweep
from celery_worker import tasks
from tests.integration.jobs.conftest import sent, stores
from tests.integration.namespaces.placed import placed_world
from tests.integration.sending import uploaded
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Role as TaskRole
from yardmaster.logs.keys import StreamKey

__all__ = ["placed_world", "sent", "stores"]

USERS, NAMESPACES, REMOVALS = "/api/v1/users/", "/api/v1/namespaces/", "/api/v1/removals/"


@pytest.fixture
def world(placed_world):
    return placed_world


def go_on(removal: Removal, seconds: float = 0) -> Removal:
    """One pass, after so much time."""
    now = timezone.now() + timedelta(seconds=seconds)
    Removal.objects.filter(pk=removal.pk, ended_at=None).update(next_look_at=now)
    removal_carry_out(removal.pk, clock=lambda: now)
    return Removal.objects.get(pk=removal.pk)


def until_ended(world, removal: Removal) -> Removal:
    for _ in range(10):
        removal = go_on(removal)
        if removal.ended_at is not None:
            return removal
        world.until_quiet()
        uploads_sweep(world.now)
    raise AssertionError(f"it never ends: {removal.left}")


def said(removal: Removal) -> str:
    return " | ".join(f"{one['what']}: {one['why']}" for one in removal.left)


def test_a_user_without_anything_goes_at_once_with_the_place(world, ada, admin):
    mine = ada.personal_namespace
    engine_namespaces_keep(mine.pk)
    removal = go_on(user_remove(user=ada, data=Data.KEEP, actor=admin))
    assert (removal.left, removal.ended_at is None) == ([], False)
    assert not User.objects.filter(pk=ada.pk).exists()
    assert not Namespace.objects.filter(pk=mine.pk).exists()
    assert (world.engine.namespaces, EngineNamespace.objects.count()) == ({}, 0)


def test_the_user_is_out_and_the_namespace_closed_at_once(world, ada, admin, signed_in, with_token):
    session, token = signed_in(ada), with_token(ada)
    answer = signed_in(admin).post(f"{USERS}{ada.pk}/removal/", {})
    assert (answer.status_code, answer.json()["data"], answer.json()["ended_at"]) == (202, "keep", None)
    assert session.get("/api/v1/me/").status_code == token.get("/api/v1/me/").status_code == 401
    assert Namespace.objects.get(owner=ada).closed_at is not None


def test_jobs_are_stopped_and_their_output_archived_before_the_engine_forgets(world, ada, admin):
    """polyaxon#452: what only the engine kept of a job's output must not go with it."""
    job = world.launch(ada)
    world.settle()
    world.engine.kept_output[TaskRole.WORKER, 0] = ["the last words"]
    removal = go_on(user_remove(user=ada, data=Data.KEEP, actor=admin))
    assert "digits" in said(removal)
    assert "remove" not in [verb for verb, _ in world.engine.asked], "not before the jobs are over"
    removal = until_ended(world, removal)
    assert (world.again(job).phase, world.engine.namespaces) == ("STOPPED", {})
    assert log_store().next_line(StreamKey(job.pk, 1, TaskRole.WORKER, 0)) == 1


def test_kept_data_stay_for_administrators_and_are_listed(world, ada, admin, signed_in):
    world.launch(ada)
    world.settle()
    removal = until_ended(world, user_remove(user=ada, data=Data.KEEP, actor=admin))
    *things, size = [one["what"] for one in removal.left]
    assert things == ["1 jobs, with their logs", "1 code"]
    assert size.endswith(" B of files and logs")  # the marks at the ends of its tasks' logs
    assert signed_in(admin).get("/api/v1/jobs/?namespace=ada").json()["results"][0]["name"] == "digits"
    user = User.objects.get(pk=ada.pk)
    assert not user.is_active


def test_deleted_data_leave_nothing(world, ada, admin, signed_in):
    job = world.launch(ada)
    world.settle()
    uploaded(signed_in(ada), {"a": b"x"})
    removal = until_ended(world, user_remove(user=ada, data=Data.DELETE, actor=admin))
    assert removal.left == []
    assert not any(model.objects.exists() for model in (Job, Upload, EngineNamespace))
    assert not log_store().next_line(StreamKey(job.pk, 1, TaskRole.WORKER, 0))
    assert list(User.objects.values_list("username", flat=True)) == ["admin"]
    event = AuditEvent.objects.get(action="user.removed")
    assert (event.subject, event.facts["name"], event.facts["left"]) == (f"user:{ada.pk}", "ada", [])


def test_kubeflow_4496_what_holds_the_end_up_is_named_until_it_is_gone(world, ada, admin, signed_in):
    mine = ada.personal_namespace
    engine_namespaces_keep(mine.pk)
    world.engine.finalizers[mine.pk] = ("Finalizers remaining: example.org/never in 1 resource instances",)
    removal = user_remove(user=ada, data=Data.KEEP, actor=admin)
    for _ in range(3):
        removal = go_on(removal)
        assert removal.ended_at is None
    row = signed_in(admin).get(f"{REMOVALS}{removal.pk}/").json()
    assert row["left"][0]["what"] == "namespace on placed"
    assert "example.org/never" in row["left"][0]["why"]
    removal = go_on(removal, EAGER.total_seconds() + 1)
    assert removal.next_look_at > timezone.now() + EAGER + LATER - timedelta(seconds=5)
    del world.engine.finalizers[mine.pk]
    assert go_on(removal).ended_at is not None


def test_an_engine_that_is_away_is_said_and_asked_again(world, ada, admin):
    engine_namespaces_keep(ada.personal_namespace.pk)
    removal = user_remove(user=ada, data=Data.KEEP, actor=admin)
    world.engine.fail_next("remove", Unavailable("The cluster did not answer."))
    removal = go_on(removal)
    assert "did not answer" in said(removal)
    assert go_on(removal).ended_at is not None


def test_it_goes_on_after_a_restart_of_the_portal(world, ada, admin, sent):
    """The worker was killed within a pass: its claim runs out, and the sweep finds the removal."""
    removal = user_remove(user=ada, data=Data.KEEP, actor=admin)
    Removal.objects.update(next_look_at=timezone.now() + timedelta(minutes=2))
    assert removals_sweep(timezone.now()) == 0
    assert removals_sweep(timezone.now() + timedelta(minutes=2)) == 1
    tasks.carry_out_removal(str(removal.pk))
    assert Removal.objects.get().ended_at is None, "another may be at it"
    assert go_on(removal).ended_at is not None


def test_it_is_carried_out_by_a_message(world, ada, admin, sent, signed_in, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        body = signed_in(admin).post(f"{USERS}{ada.pk}/removal/", {"data": "delete"}).json()
    assert (CARRY_OUT_REMOVAL, body["id"]) in sent
    tasks.carry_out_removal(body["id"])
    assert not User.objects.filter(pk=ada.pk).exists()
    assert signed_in(admin).get(REMOVALS).json()["results"][0]["left"] == []


def test_asked_twice_it_is_one_removal_which_may_become_a_deletion(world, ada, admin):
    world.launch(ada)
    first = user_remove(user=ada, data=Data.KEEP, actor=admin)
    assert user_remove(user=ada, data=Data.KEEP, actor=admin).pk == first.pk
    assert user_remove(user=ada, data=Data.DELETE, actor=admin).pk == first.pk
    assert Removal.objects.get().data == "delete"
    assert user_remove(user=ada, data=Data.KEEP, actor=admin).data == "delete"
    assert AuditEvent.objects.filter(action="user.remove").count() == 2


def test_activating_the_account_again_calls_it_off(world, ada, admin):
    mine = ada.personal_namespace
    engine_namespaces_keep(mine.pk)
    world.engine.finalizers[mine.pk] = ("a finalizer",)
    removal = go_on(user_remove(user=ada, data=Data.DELETE, actor=admin))
    assert removal.left[0]["why"] == "a finalizer"
    user_change(user=User.objects.get(pk=ada.pk), actor=admin, is_active=True)
    removal = go_on(removal)
    assert removal.ended_at is not None
    assert "Cancelled" in said(removal)
    assert Namespace.objects.get(pk=mine.pk).closed_at is None
    engine_namespaces_keep(mine.pk)
    assert not EngineNamespace.objects.get().goes
    world.launch(User.objects.get(pk=ada.pk))


def test_what_was_kept_is_opened_with_the_account(world, ada, admin):
    world.launch(ada)
    world.settle()
    until_ended(world, user_remove(user=ada, data=Data.KEEP, actor=admin))
    user_change(user=User.objects.get(pk=ada.pk), actor=admin, is_active=True)
    job = world.launch(User.objects.get(pk=ada.pk))
    world.settle()
    assert world.again(job).phase == "RUNNING"


def test_what_was_kept_may_be_deleted_later(world, ada, admin):
    world.launch(ada)
    world.settle()
    kept = until_ended(world, user_remove(user=ada, data=Data.KEEP, actor=admin))
    deleted = until_ended(world, user_remove(user=User.objects.get(pk=ada.pk), data=Data.DELETE, actor=admin))
    assert kept.pk != deleted.pk
    assert deleted.left == []
    assert not User.objects.filter(pk=ada.pk).exists()


def test_nothing_new_begins_in_a_closed_namespace(world, ada, admin, signed_in):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    spec = world.spec_json(ada)
    answer = signed_in(admin).post(f"{NAMESPACES}{team.pk}/removal/", {})
    assert answer.status_code == 202
    for who in (ada, admin):
        refused = signed_in(who).post("/api/v1/jobs/", {"namespace": "vision", "spec": spec})
        assert (refused.status_code, refused.json()["code"]) == (409, "namespace_closed"), who
    upload = {"kind": "dataset", "namespace": "vision", "files": [{"path": "a", "size": 1}]}
    assert signed_in(ada).post("/api/v1/uploads/", upload).json()["code"] == "namespace_closed"
    assert signed_in(ada).get(f"{NAMESPACES}{team.pk}/").status_code == 200


def test_a_teams_namespace_goes_and_its_members_stay(world, ada, admin):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    engine_namespaces_keep(team.pk)
    Membership.objects.create(namespace=team, user=admin, role=Role.MEMBER)
    removal = go_on(namespace_remove(namespace=team, data=Data.DELETE, actor=admin))
    assert (removal.ended_at is None, removal.left) == (False, [])
    assert not Namespace.objects.filter(slug="vision").exists()
    assert team.pk not in world.engine.namespaces
    assert User.objects.filter(pk=ada.pk).exists()


def test_a_team_keeps_the_jobs_of_somebody_who_left(world, ada, bob, admin):
    team = team_create(slug="vision", title="", manager=bob, actor=admin)
    Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER)
    job = world.launch(ada, namespace=team)
    world.settle()
    removal = go_on(user_remove(user=ada, data=Data.DELETE, actor=admin))
    assert "unfinished job uses" in said(removal), "its code is hers"
    world.engine.succeed(job)
    removal = until_ended(world, removal)
    assert "The account stays, locked" in said(removal)
    assert world.again(job).namespace_id == team.pk
    assert not User.objects.get(pk=ada.pk).is_active


class TestWhoMay:
    def test_only_administrators(self, world, ada, bob, signed_in):
        client = signed_in(ada)
        for answer in (
            client.post(f"{USERS}{bob.pk}/removal/", {}),
            client.post(f"{NAMESPACES}{ada.personal_namespace.pk}/removal/", {}),
            client.get(REMOVALS),
        ):
            assert answer.status_code == 403
        assert not Removal.objects.exists()

    def test_nobody_removes_himself(self, world, admin, signed_in):
        assert signed_in(admin).post(f"{USERS}{admin.pk}/removal/", {}).status_code == 409
        assert User.objects.get(pk=admin.pk).is_active

    def test_the_only_manager_of_a_team_is_not_removed(self, world, ada, admin, signed_in):
        team_create(slug="vision", title="", manager=ada, actor=admin)
        answer = signed_in(admin).post(f"{USERS}{ada.pk}/removal/", {})
        assert answer.status_code == 409
        assert "vision" in answer.json()["detail"]
        assert User.objects.get(pk=ada.pk).is_active
        assert Namespace.objects.get(owner=ada).closed_at is None

    def test_a_personal_namespace_goes_with_its_person(self, world, ada, admin, signed_in):
        answer = signed_in(admin).post(f"{NAMESPACES}{ada.personal_namespace.pk}/removal/", {})
        assert answer.json()["code"] == "personal_namespace"

    def test_what_is_neither_kept_nor_deleted_is_named(self, world, ada, admin, signed_in):
        answer = signed_in(admin).post(f"{USERS}{ada.pk}/removal/", {"data": "burn"})
        assert answer.json()["errors"][0]["field"] == "data"


def test_the_sweep_of_jobs_does_not_touch_removals(world, ada, admin):
    user_remove(user=ada, data=Data.KEEP, actor=admin)
    assert sweep(timezone.now()) == 0
