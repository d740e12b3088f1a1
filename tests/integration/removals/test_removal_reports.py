"""What a removal would do, and what it has done: the preview, and a report that is true whatever came between them."""

from __future__ import annotations

import pytest

from apps.accounts.models import User
from apps.accounts.services import token_create, user_sign_out
from apps.jobs.services import job_stop
from apps.namespaces.models import Role
from apps.namespaces.services import member_add, team_create
from apps.removals.contents import account_contents
from apps.removals.models import Data, Removal
from apps.removals.preview import fate_of
from apps.removals.report import report_of
from apps.removals.services import namespace_remove, user_remove
from tests.integration.jobs.conftest import sent, stores
from tests.integration.namespaces.placed import placed_world
from tests.integration.removals.test_removals import until_ended
from tests.integration.sending import uploaded

__all__ = ["placed_world", "sent", "stores"]


@pytest.fixture
def world(placed_world):
    return placed_world


def preview(api, user: User) -> dict:
    answer = api.get(f"/api/v1/users/{user.pk}/removal/preview/")
    assert answer.status_code == 200, answer.content
    return answer.json()


def amounts(counted) -> dict[str, str]:
    return {one.kind: one.amount for one in counted}


def test_the_preview_counts_what_the_removal_then_deletes(world, ada, admin, signed_in):
    world.launch(ada)
    world.settle()
    uploaded(signed_in(ada), {"a": b"x"})
    token_create(user=ada, name="t", scopes=[], expires_in=None)
    said = preview(signed_in(admin), ada)
    assert said["found"]["jobs"] == said["found"]["unfinished_jobs"] == 1
    assert said["found"]["code"] == said["found"]["tokens"] == 1
    assert sum(said["jobs_by_phase"].values()) == 1
    assert said["keep"]["kept"]["code"] == 1
    assert said["keep"]["account_stays"] == "Its namespace keeps data."
    assert said["delete"]["kept"] == {}
    removal = until_ended(world, user_remove(user=ada, data=Data.DELETE, actor=admin))
    report = report_of(removal)
    assert report.kept == []
    assert report.stopped_jobs == 1
    removed = amounts(report.removed)
    for kind in ("jobs", "code", "tokens", "uploads"):
        assert removed[kind] == f"{said['delete']['removed'][kind]}", kind


def test_what_is_kept_is_counted_at_the_end(world, ada, admin, signed_in):
    world.launch(ada)
    world.settle()
    said = preview(signed_in(admin), ada)
    report = report_of(until_ended(world, user_remove(user=ada, data=Data.KEEP, actor=admin)))
    assert amounts(report.kept)["jobs"] == f"{said['keep']['kept']['jobs']}" == "1"
    assert "jobs" not in amounts(report.removed)


def test_a_job_that_was_launched_after_the_preview_is_in_the_report(world, ada, admin, signed_in):
    said = preview(signed_in(admin), ada)
    assert said["found"]["jobs"] == 0
    world.launch(ada)
    report = report_of(until_ended(world, user_remove(user=ada, data=Data.DELETE, actor=admin)))
    assert (amounts(report.removed)["jobs"], report.stopped_jobs) == ("1", 1)


def test_jobs_in_teams_stay_and_so_does_the_account(world, ada, admin, signed_in):
    team = team_create(slug="vision", title="", manager=admin, actor=admin)
    member_add(namespace=team, user=ada, role=Role.MEMBER, actor=admin)
    job = world.launch(ada, namespace=team)
    said = preview(signed_in(admin), ada)
    assert said["jobs_in_teams"] == 1
    assert "1 job in teams" in said["delete"]["account_stays"]
    world.settle()
    job_stop(user=admin, job=job)
    world.until_quiet()
    until_ended(world, user_remove(user=ada, data=Data.DELETE, actor=admin))
    assert not User.objects.get(pk=ada.pk).is_active


def test_a_team_has_a_preview_too_and_orphans_are_named(world, ada, admin, signed_in):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    api = signed_in(admin)
    assert preview(api, ada)["orphaned_teams"] == ["vision"]
    assert preview(api, admin)["blockers"] == ["You cannot remove yourself. Ask another administrator."]
    said = api.get(f"/api/v1/namespaces/{team.pk}/removal/preview/").json()
    assert (said["name"], said["found"]["members"]) == ("vision", 1)
    report = report_of(until_ended(world, namespace_remove(namespace=team, data=Data.KEEP, actor=admin)))
    assert amounts(report.removed)["members"] == "1"
    assert signed_in(ada).get(f"/api/v1/users/{ada.pk}/removal/preview/").status_code == 403
    personal = api.get(f"/api/v1/namespaces/{ada.personal_namespace.pk}/removal/preview/")
    assert personal.json()["code"] == "personal_namespace"


def test_one_from_before_reports_were_kept_has_no_counts(ada, admin):
    removal = user_remove(user=ada, data=Data.KEEP, actor=admin)
    Removal.objects.filter(pk=removal.pk).update(found={}, kept={})
    report = report_of(Removal.objects.get())
    assert (report.found, report.removed, report.stopped_jobs) == ([], [], 0)


def test_every_kind_goes_or_is_kept():
    found = {"jobs": 3, "unfinished_jobs": 1, "bytes": 9, "secrets": 2, "tokens": 4, "memberships": 1, "homes": 1}
    keep, delete = fate_of(found, Data.KEEP), fate_of(found, Data.DELETE)
    assert keep.kept == {"jobs": 3, "bytes": 9, "memberships": 1}
    assert keep.removed == {"secrets": 2, "tokens": 4, "homes": 1}
    assert delete.kept == {}
    assert delete.removed == {kind: count for kind, count in found.items() if kind != "unfinished_jobs"}
    assert fate_of({"homes": 1}, Data.KEEP, is_team=True).kept == {"homes": 1}
    assert fate_of({"memberships": 1}, Data.DELETE, jobs_in_teams=2).kept == {"memberships": 1}


def test_a_browser_that_is_signed_out_is_not_counted_any_more(ada, admin, client):
    client.force_login(ada)
    assert client.get("/account/").status_code == 200
    assert account_contents(ada)["browsers"] == 1
    user_sign_out(user=ada, actor=admin)
    assert account_contents(User.objects.get(pk=ada.pk))["browsers"] == 0
