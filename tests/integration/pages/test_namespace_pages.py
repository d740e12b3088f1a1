"""The pages of namespaces: who belongs to one, what it may hold, who holds it, and who may change that."""

from __future__ import annotations

import uuid
from decimal import Decimal

import pytest

from apps.administration.services import quota_set
from apps.namespaces.models import Membership, Namespace, Quota, Role
from apps.namespaces.services import member_add, team_create
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.pages.test_account_pages import HOSTILE

__all__ = ["engine_settings", "stores", "world"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def team(ada, admin) -> Namespace:
    return team_create(slug="vision", title=HOSTILE, manager=ada, actor=admin)


def page_of(namespace) -> str:
    return f"/namespaces/{namespace.pk}/"


def part_of(namespace) -> str:
    """What the page fetches: who uses what, and the quota's history."""
    return f"{page_of(namespace)}holders/"


def role_of(user, namespace) -> str | None:
    return Membership.objects.filter(user=user, namespace=namespace).values_list("role", flat=True).first()


def test_it_shows_members_quota_and_who_uses_it_in_few_queries(
    world, ada, bob, team, client, django_assert_max_num_queries
):
    member_add(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    world.launch(bob, namespace=team)
    world.settle()
    client.force_login(ada)
    client.get(page_of(team))
    with django_assert_max_num_queries(12):
        page = client.get(page_of(team)).content.decode()
    assert f'hx-get="{part_of(team)}"' in page
    part = client.get(part_of(team)).content.decode()
    assert "3 cores" in part
    assert "3.0 GiB" in part
    assert "owner=bob" in part
    assert "<script>alert" not in part
    assert "<script>alert" not in page
    assert " style=" not in page


def test_a_stranger_sees_none_of_it_and_changes_none_of_it(team, bob, client):
    client.force_login(bob)
    addresses = ["", "title/", "quota/", "members/add/", f"members/{bob.pk}/", f"members/{bob.pk}/remove/"]
    assert client.get(page_of(team)).status_code == 404
    for address in addresses[1:]:
        assert client.post(page_of(team) + address, {"username": "bob", "role": "manager"}).status_code == 404
    assert client.get(f"/namespaces/{uuid.uuid4()}/").status_code == 404
    assert role_of(bob, team) is None


@pytest.mark.parametrize("role", [Role.VIEWER, Role.MEMBER])
def test_who_does_not_manage_sees_no_form_and_changes_nothing(team, ada, bob, client, role):
    member_add(namespace=team, user=bob, role=role, actor=ada)
    client.force_login(bob)
    page = client.get(page_of(team)).content.decode()
    assert "/members/add/" not in page
    assert "/quota/" not in page
    for address, wish in [
        ("members/add/", {"username": "admin", "role": "viewer"}),
        (f"members/{bob.pk}/", {"role": "manager"}),
        (f"members/{ada.pk}/remove/", {}),
        ("title/", {"title": "mine"}),
        ("quota/", {"cpu": "1"}),
    ]:
        assert client.post(page_of(team) + address, wish).status_code == 403
    assert role_of(bob, team) == role
    assert role_of(ada, team) == Role.MANAGER


def test_a_manager_adds_changes_and_removes(team, ada, bob, client):
    client.force_login(ada)
    client.post(f"{page_of(team)}members/add/", {"username": "BOB", "role": "viewer"})
    assert role_of(bob, team) == Role.VIEWER
    client.post(f"{page_of(team)}members/{bob.pk}/", {"role": "member"})
    assert role_of(bob, team) == Role.MEMBER
    page = client.post(f"{page_of(team)}members/{bob.pk}/remove/", follow=True).content.decode()
    assert role_of(bob, team) is None
    assert "bob was removed" in page


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"username": "nobody", "role": "member"}, "There is no such user"),
        ({"username": "", "role": "member"}, "required"),
        ({"username": HOSTILE, "role": "member"}, "There is no such user"),
        ({"username": "ada", "role": "viewer"}, "is a manager already"),
    ],
)
def test_what_speaks_against_a_new_member_is_said_beside_what_was_typed(team, ada, client, wish, said):
    client.force_login(ada)
    page = client.post(f"{page_of(team)}members/add/", wish).content.decode()
    assert said in page
    assert "<script>alert" not in page


def test_the_last_manager_cannot_go_and_is_told_why(team, ada, client):
    client.force_login(ada)
    for address, wish in [(f"members/{ada.pk}/", {"role": "viewer"}), (f"members/{ada.pk}/remove/", {})]:
        page = client.post(page_of(team) + address, wish, follow=True).content.decode()
        assert "only manager" in page
    assert role_of(ada, team) == Role.MANAGER


def test_whoever_leaves_sees_it_no_more(team, ada, bob, client):
    member_add(namespace=team, user=bob, role=Role.VIEWER, actor=ada)
    client.force_login(bob)
    response = client.post(f"{page_of(team)}members/{bob.pk}/remove/")
    assert response.headers["Location"] == "/namespaces/"
    assert client.get(page_of(team)).status_code == 404


def test_a_personal_namespace_stays_its_owners_alone(ada, bob, client):
    own = ada.personal_namespace
    client.force_login(ada)
    assert "/members/add/" not in client.get(page_of(own)).content.decode()
    client.post(f"{page_of(own)}members/add/", {"username": "bob", "role": "viewer"})
    assert role_of(bob, own) is None


class TestQuota:
    def test_an_administrator_sets_it_and_the_change_is_shown(self, team, admin, ada, client):
        """kubeflow#5094 asks for an admin page; kubeflow#4567: ordinary users see the quota, too."""
        client.force_login(admin)
        wish = {
            "cpu": "500m",
            "memory": "16Gi",
            "gpus": "",
            "storage": "1T",
            "running_jobs": "3",
            "reason": "A new project",
        }
        client.post(f"{page_of(team)}quota/", wish)
        quota = Quota.objects.get(namespace=team)
        assert (quota.cpu, quota.memory, quota.gpus) == (Decimal("0.5"), 16 << 30, None)
        assert (quota.storage, quota.running_jobs) == (10**12, 3)
        client.force_login(ada)
        page = client.get(part_of(team)).content.decode()
        assert "no limit → <strong>0.5</strong>" in page
        assert "no limit → <strong>16 GiB</strong>" in page
        assert "<bdi>admin</bdi>" in page
        assert "A new project" in page

    def test_a_reason_is_required_and_what_was_typed_is_kept(self, team, admin, client):
        client.force_login(admin)
        refused = client.post(f"{page_of(team)}quota/", {"cpu": "2"})
        assert refused.context["quota_form"].errors.keys() == {"reason"}
        assert refused.context["quota_form"]["cpu"].value() == "2"
        assert Quota.objects.get(namespace=team).cpu is None

    def test_what_is_saved_unchanged_changes_nothing(self, team, admin, client):
        limits = {"cpu": Decimal("1.5"), "memory": 1_000_000_007, "gpus": 0, "storage": 5 << 40, "running_jobs": 100}
        limits["extended"] = {"amd.com/gpu": 4}
        quota_set(namespace=team, limits=limits, actor=admin)
        client.force_login(admin)
        shown = client.get(page_of(team)).context["quota_form"].initial
        client.post(f"{page_of(team)}quota/", shown | {"reason": "As before"})
        quota = Quota.objects.get(namespace=team)
        assert {name: getattr(quota, name) for name in limits} == limits
        assert len(client.get(part_of(team)).context["quota_changes"]) == 1

    def test_limits_by_name_are_typed_and_their_changes_shown(self, team, admin, client):
        client.force_login(admin)
        address = f"{page_of(team)}quota/"
        client.post(address, {"gpus": "0", "extended": "rdma/hca=2, amd.com/gpu = 4,", "reason": "x"})
        assert Quota.objects.get(namespace=team).extended == {"amd.com/gpu": 4, "rdma/hca": 2}
        page = client.get(page_of(team))
        assert page.context["quota_form"].initial["extended"] == "amd.com/gpu=4, rdma/hca=2"
        assert "amd.com/gpu: no limit → <strong>4</strong>" in client.get(part_of(team)).content.decode()
        initial = page.context["quota_form"].initial
        client.post(address, {**initial, "extended": "amd.com/gpu=4, rdma/hca=3", "reason": "x"})
        moved = client.get(part_of(team)).context["quota_changes"][0].moved
        assert [(one.name, one.before, one.after) for one in moved] == [("rdma/hca", 2, 3)]

    def test_a_change_that_somebody_else_made_meanwhile_is_not_undone(self, team, admin, client):
        limits = {"cpu": Decimal("1.5"), "memory": 1 << 30, "gpus": 0, "storage": 5 << 40, "running_jobs": 100}
        quota_set(namespace=team, limits=limits, actor=admin)
        client.force_login(admin)
        shown = client.get(page_of(team)).context["quota_form"].initial
        quota_set(namespace=team, limits={**limits, "gpus": 4}, actor=admin)
        refused = client.post(f"{page_of(team)}quota/", {**shown, "cpu": "3", "reason": "More"})
        assert "The limits were changed by another user" in refused.content.decode()
        assert Quota.objects.get(namespace=team).gpus == 4
        again = refused.context["quota_form"].data
        assert (again["cpu"], again["gpus"], again["reason"]) == ("3", "4", "More")
        client.post(f"{page_of(team)}quota/", again)
        quota = Quota.objects.get(namespace=team)
        assert (quota.cpu, quota.gpus) == (3, 4)

    @pytest.mark.parametrize("seen", ["", "[]", "{", '{"cpu": "1"}', '{"cpu": {}}'])
    def test_what_was_seen_may_be_anything_and_is_then_nothing(self, team, admin, client, seen):
        client.force_login(admin)
        client.post(f"{page_of(team)}quota/", {"cpu": "2", "seen": seen, "reason": "x"})
        assert Quota.objects.get(namespace=team).cpu == 2

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("cpu", "many"),
            ("cpu", "-1"),
            ("memory", "1Xi"),
            ("gpus", "1.5"),
            ("storage", "9" * 29),
            ("extended", "amd.com/gpu"),
            ("extended", "amd.com/gpu=many"),
            ("extended", "amd.com/gpu=1, amd.com/gpu=2"),
            ("extended", "a b=1"),
        ],
    )
    def test_an_amount_that_is_none_is_refused_and_nothing_becomes_unlimited(self, team, admin, client, field, value):
        limits = {"cpu": Decimal(1), "memory": 1, "gpus": 1, "storage": 1, "running_jobs": 1}
        quota_set(namespace=team, limits=limits, actor=admin)
        client.force_login(admin)
        response = client.post(f"{page_of(team)}quota/", {field: value, "reason": "x"})
        assert response.status_code == 200
        assert response.context["quota_form"].errors.keys() == {field}
        assert Quota.objects.get(namespace=team).running_jobs == 1


class TestTeams:
    def test_an_administrator_makes_one_with_its_first_manager(self, admin, bob, client):
        client.force_login(admin)
        response = client.post("/namespaces/", {"slug": "speech", "title": "Speech", "manager": "bob"})
        made = Namespace.objects.get(slug="speech")
        assert response.headers["Location"] == page_of(made)
        assert role_of(bob, made) == Role.MANAGER

    @pytest.mark.parametrize(
        ("wish", "said"),
        [
            ({"slug": "Not a slug"}, "A slug is"),
            ({"slug": "vision"}, "already"),
            ({"slug": "x", "manager": "nobody"}, "There is no such user"),
        ],
    )
    def test_what_speaks_against_one_is_said(self, team, admin, client, wish, said):
        client.force_login(admin)
        assert said in client.post("/namespaces/", wish).content.decode()
        assert Namespace.objects.filter(owner=None).count() == 1

    def test_nobody_else_makes_one(self, ada, client):
        client.force_login(ada)
        assert client.post("/namespaces/", {"slug": "speech"}).status_code == 403
        assert "New team" not in client.get("/namespaces/").content.decode()
