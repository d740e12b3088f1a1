"""Namespaces, members, quotas: who sees, who changes, and what is refused."""

from __future__ import annotations

import uuid

import pytest

from apps.accounts.models import User
from apps.audit.models import AuditEvent
from apps.errors import DomainError, Forbidden, NotFound
from apps.namespaces.models import Membership, Namespace, Quota, Role
from apps.namespaces.selectors import namespace_for, namespaces_visible, quota_of, require_role
from apps.namespaces.services import team_create

UNKNOWN = uuid.UUID("01900000-0000-7000-8000-000000000001")

pytestmark = pytest.mark.django_db
URL = "/api/v1/namespaces/"
LIMITS = {"cpu": 4, "memory": "8Gi", "gpus": 0, "storage": None, "running_jobs": 2}


@pytest.fixture
def team(admin, ada) -> Namespace:
    return team_create(slug="vision", title="Vision", manager=ada, actor=admin)


@pytest.fixture
def carol(db, team) -> User:
    carol = User.objects.create_user("carol")
    Membership.objects.create(namespace=team, user=carol, role=Role.MEMBER)
    return carol


class TestSelectors:
    def test_none_is_the_own_namespace(self, ada):
        assert namespace_for(ada, None) == namespace_for(ada, "ada") == ada.personal_namespace

    def test_a_namespace_is_found_by_id_and_slug(self, ada, team):
        for ref in ("vision", team.pk, str(team.pk)):
            assert namespace_for(ada, ref, at_least=Role.MANAGER) == team

    @pytest.mark.parametrize("ref", ["nothing", UNKNOWN, "../x", "VISION", "x" * 10_000, "a\x00b", "vision'--"])
    def test_an_unknown_one_is_a_404(self, ada, team, ref):
        with pytest.raises(NotFound):
            namespace_for(ada, ref)

    def test_a_foreign_one_sounds_like_an_unknown_one(self, bob, team):
        with pytest.raises(NotFound) as foreign:
            namespace_for(bob, "vision")
        with pytest.raises(NotFound) as unknown:
            namespace_for(bob, "nothing")
        assert foreign.value.detail == unknown.value.detail
        with pytest.raises(NotFound):
            require_role(bob, team, Role.VIEWER)

    def test_too_low_a_role_is_a_403_with_a_remedy(self, carol, team):
        with pytest.raises(Forbidden) as problem:
            namespace_for(carol, "vision", at_least=Role.MANAGER)
        assert "manager" in problem.value.remedy

    def test_administrators_see_and_may_do_everything(self, admin, ada, bob, team):
        assert namespaces_visible(admin).count() == 4
        require_role(admin, bob.personal_namespace, Role.MANAGER)

    def test_a_missing_quota_row_is_made(self, ada):
        Quota.objects.all().delete()
        assert quota_of(ada.personal_namespace).cpu is None
        assert Quota.objects.count() == 1


class TestNamespaces:
    def test_one_sees_ones_own_with_the_role(self, ada, carol, team, signed_in):
        rows = signed_in(ada).get(URL).json()["results"]
        assert [(row["slug"], row["personal"], row["role"]) for row in rows] == [
            ("vision", False, "manager"),
            ("ada", True, "manager"),
        ]
        assert signed_in(carol).get(f"{URL}{team.pk}/").json()["role"] == "member"

    def test_a_foreign_one_is_a_404_at_every_address(self, bob, ada, team, signed_in):
        client = signed_in(bob)
        for path, method in (
            ("", "get"),
            ("", "patch"),
            ("members/", "get"),
            ("members/", "post"),
            (f"members/{ada.pk}/", "patch"),
            (f"members/{ada.pk}/", "delete"),
            (f"members/{bob.pk}/", "delete"),
            ("quota/", "get"),
        ):
            response = getattr(client, method)(f"{URL}{team.pk}/{path}", {"role": "manager", "title": "x"})
            assert response.status_code == 404, (path, method)

    def test_administrators_make_teams_and_nobody_else(self, admin, ada, signed_in):
        assert signed_in(ada).post(URL, {"slug": "mine"}).status_code == 403
        body = signed_in(admin).post(URL, {"slug": "vision", "title": "Vision", "manager": "ada"}).json()
        assert signed_in(ada).get(f"{URL}{body['id']}/").json()["role"] == "manager"

    @pytest.mark.parametrize(
        "slug", ["", "A", "-a", "a-", "a b", "a/b", "x" * 64, "é", str(UNKNOWN), UNKNOWN.hex, "vision"]
    )
    def test_a_slug_that_will_not_do_is_named(self, admin, team, signed_in, slug):
        response = signed_in(admin).post(URL, {"slug": slug})
        assert response.status_code == 400
        assert response.json()["errors"][0]["field"] == "slug"

    def test_managers_change_the_title_and_nothing_else(self, ada, carol, team, signed_in):
        address = f"{URL}{team.pk}/"
        assert signed_in(ada).patch(address, {"title": "Sight"}).json()["title"] == "Sight"
        assert signed_in(carol).patch(address, {"title": "x"}).status_code == 403
        for field in ("slug", "owner", "id"):
            assert signed_in(ada).patch(address, {"title": "x", field: "y"}).status_code == 400
        team.refresh_from_db()
        assert team.title == "Sight"


class TestMembers:
    def members(self, client, team):
        rows = client.get(f"{URL}{team.pk}/members/").json()["results"]
        return {row["username"]: row["role"] for row in rows}

    def test_managers_add_change_and_remove(self, ada, bob, team, signed_in):
        client = signed_in(ada)
        address = f"{URL}{team.pk}/members/"
        assert client.post(address, {"username": "Bob", "role": "viewer"}).status_code == 201
        assert client.patch(f"{address}{bob.pk}/", {"role": "member"}).json()["role"] == "member"
        assert self.members(client, team) == {"ada": "manager", "bob": "member"}
        assert self.members(signed_in(bob), team) == {"ada": "manager", "bob": "member"}
        assert client.delete(f"{address}{bob.pk}/").status_code == 204
        assert signed_in(bob).get(address).status_code == 404

    def test_members_manage_nobody_but_may_leave(self, ada, bob, carol, team, signed_in):
        client = signed_in(carol)
        address = f"{URL}{team.pk}/members/"
        assert client.post(address, {"username": "bob"}).status_code == 403
        assert client.patch(f"{address}{carol.pk}/", {"role": "manager"}).status_code == 403
        assert client.delete(f"{address}{ada.pk}/").status_code == 403
        assert client.delete(f"{address}{carol.pk}/").status_code == 204

    @pytest.mark.parametrize("who", ["ada", "admin"])
    def test_the_last_manager_neither_leaves_nor_is_demoted(self, request, ada, carol, team, signed_in, who):
        client = signed_in(request.getfixturevalue(who))
        address = f"{URL}{team.pk}/members/{ada.pk}/"
        assert client.delete(address).status_code == 409
        assert client.patch(address, {"role": "member"}).status_code == 409
        client.patch(f"{URL}{team.pk}/members/{carol.pk}/", {"role": "manager"})
        assert client.delete(address).status_code == 204

    def test_a_locked_manager_is_not_counted(self, admin, ada, carol, team, signed_in):
        Membership.objects.filter(user=carol).update(role=Role.MANAGER)
        User.objects.filter(pk=carol.pk).update(is_active=False)
        assert signed_in(ada).delete(f"{URL}{team.pk}/members/{ada.pk}/").status_code == 409

    def test_adding_twice_is_harmless_and_never_changes_a_role(self, ada, carol, team, signed_in):
        address = f"{URL}{team.pk}/members/"
        assert signed_in(ada).post(address, {"username": "carol", "role": "member"}).status_code == 201
        assert signed_in(ada).post(address, {"username": "carol", "role": "manager"}).status_code == 409
        assert Membership.objects.get(user=carol, namespace=team).role == Role.MEMBER

    def test_a_personal_namespace_has_its_owner_alone(self, ada, bob, signed_in):
        address = f"{URL}{ada.personal_namespace.pk}/members/"
        client = signed_in(ada)
        assert client.post(address, {"username": "bob"}).json()["code"] == "personal_namespace"
        assert client.delete(f"{address}{ada.pk}/").status_code == 409
        assert client.patch(f"{address}{ada.pk}/", {"role": "viewer"}).status_code == 409

    def test_an_unknown_user_or_role_is_named(self, ada, team, signed_in):
        address = f"{URL}{team.pk}/members/"
        assert signed_in(ada).post(address, {"username": "nobody"}).status_code == 404
        assert signed_in(ada).post(address, {"username": "ada", "role": "owner"}).json()["errors"][0]["field"] == "role"


class TestQuota:
    """kubeflow#4567, #5251: ordinary users see their quota and what of it is in use."""

    def test_members_see_limits_and_use(self, admin, carol, team, signed_in):
        signed_in(admin).put(f"{URL}{team.pk}/quota/", LIMITS)
        body = signed_in(carol).get(f"{URL}{team.pk}/quota/").json()
        hard = {"cpu": 4.0, "memory": 8 << 30, "gpus": 0, "storage": None, "files": None, "running_jobs": 2}
        hard |= {"logs": None, "sessions": None, "queued_jobs": None}
        assert body["hard"] == hard
        assert body["used"] == dict.fromkeys(hard, 0)
        assert set(body["reserved"]) == set(body["hard"])

    def test_only_administrators_set_it(self, ada, team, signed_in):
        assert signed_in(ada).put(f"{URL}{team.pk}/quota/", LIMITS).status_code == 403

    def test_every_change_is_kept_with_its_author(self, admin, team, signed_in):
        client = signed_in(admin)
        client.put(f"{URL}{team.pk}/quota/", LIMITS)
        client.put(f"{URL}{team.pk}/quota/", {**LIMITS, "cpu": "500m"})
        history = list(Quota.history.filter(namespace=team).values_list("cpu", "history_user__username"))
        assert [(cpu and float(cpu), user) for cpu, user in history] == [(0.5, "admin"), (4, "admin"), (None, None)]
        event = AuditEvent.objects.filter(action="quota.set").order_by("-pk").first()
        assert (event.facts["before"]["cpu"], event.facts["after"]["cpu"]) == (4.0, 0.5)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("cpu", -1),
            ("cpu", "many"),
            ("cpu", 10**12),
            ("cpu", True),
            ("memory", "8 apples"),
            ("memory", 2**63),
            ("memory", 1e300),
            ("gpus", 0.5),
            ("gpus", 2**31),
            ("storage", -1),
            ("running_jobs", "x"),
            ("extended", None),
            ("extended", [["amd.com/gpu", 4]]),
            ("extended", {"amd.com/gpu": -1}),
            ("extended", {"amd.com/gpu": "4"}),
            ("extended", {"amd.com/gpu": True}),
            ("extended", {"amd.com/gpu": 10**9}),
            ("extended", {"a b": 1}),
            ("extended", {"gpus": 1}),
            ("extended", {f"vendor.example/{n}": 1 for n in range(51)}),
        ],
    )
    def test_a_limit_that_will_not_do_is_named(self, admin, team, signed_in, field, value):
        response = signed_in(admin).put(f"{URL}{team.pk}/quota/", {**LIMITS, field: value})
        assert response.status_code == 400
        assert response.json()["errors"][0]["field"] == field

    def test_limits_by_name_are_set_shown_kept_and_left_alone_where_they_are_not_said(
        self, admin, carol, team, signed_in
    ):
        address, client = f"{URL}{team.pk}/quota/", signed_in(admin)
        assert client.put(address, {**LIMITS, "extended": {"rdma/hca": 2, "amd.com/gpu": 4}}).status_code == 200
        told = {"amd.com/gpu": {"hard": 4, "used": 0}, "rdma/hca": {"hard": 2, "used": 0}}
        assert signed_in(carol).get(address).json()["extended"] == told
        client.put(address, LIMITS)
        assert signed_in(carol).get(address).json()["extended"] == told
        client.put(address, {**LIMITS, "extended": {}})
        assert signed_in(carol).get(address).json()["extended"] == {}
        facts = AuditEvent.objects.filter(action="quota.set").order_by("-pk").first().facts
        assert (facts["before"]["extended"], facts["after"]["extended"]) == ({"amd.com/gpu": 4, "rdma/hca": 2}, {})

    @pytest.mark.parametrize("field", LIMITS)
    def test_a_forgotten_limit_does_not_become_unlimited(self, admin, team, signed_in, field):
        limits = {name: value for name, value in LIMITS.items() if name != field}
        response = signed_in(admin).put(f"{URL}{team.pk}/quota/", limits)
        assert response.json()["errors"][0]["field"] == field


def test_me_shows_where_one_may_work(carol, team, signed_in):
    body = signed_in(carol).get("/api/v1/me/").json()
    assert (body["username"], body["is_staff"]) == ("carol", False)
    assert [(one["slug"], one["role"]) for one in body["namespaces"]] == [("carol", "manager"), ("vision", "member")]
    assert body["namespaces"][0]["usage"]["hard"]["cpu"] is None


def test_a_role_lower_than_any_is_none_at_all(bob, team):
    with pytest.raises(DomainError):
        require_role(bob, team, Role.VIEWER)
