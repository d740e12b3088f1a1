"""Invitations, over pages and API: made, used, revoked; what is refused, and what cannot be told from outside."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import user_change
from apps.audit.models import AuditEvent
from apps.errors import Conflict
from apps.namespaces.invitations import Wish, invitation_accept, invitation_create
from apps.namespaces.models import Invitation, Membership, Role
from apps.namespaces.services import member_change, team_create

pytestmark = pytest.mark.django_db
PAGE, API = "/admin/invitations/", "/api/v1/invitations/"
GOOD = {"username": "grace", "password": "correct horse 9", "again": "correct horse 9"}


@pytest.fixture
def team(admin, ada):
    return team_create(slug="vision", title="", manager=ada, actor=admin)


def link(actor: User, **wish) -> str:
    _, token = invitation_create(wish=Wish(**wish), actor=actor)
    return f"/invitation/{token}/"


def path_in(page: str) -> str:
    found = re.search(r"http://[^/]+(/invitation/[^<\s]+)", page)
    assert found, "no link on the page"
    return found[1]


def test_an_account_is_made_joins_the_team_and_is_signed_in(admin, team, client):
    client.force_login(admin)
    wish = {"email": "", "namespace": "vision", "role": "viewer", "days": 3, "uses": 2}
    address = path_in(client.post(PAGE, wish).content.decode())
    assert "/invitation/" not in client.get(PAGE).content.decode()
    client.logout()
    assert "You join the team" in client.get(address).content.decode()
    assert client.post(address, GOOD | {"role": "manager", "is_staff": "on"}).status_code == 302
    grace = User.objects.get(username="grace")
    assert Membership.objects.get(user=grace, namespace=team).role == Role.VIEWER
    assert not grace.is_staff
    assert client.get("/account/").status_code == 200
    client.force_login(admin)
    page = client.get(PAGE).content.decode()
    assert "1 of 2 used" in page
    assert "grace" in page
    assert AuditEvent.objects.filter(action="invitation.use", facts__name="grace").exists()


def test_only_a_hash_is_stored(admin):
    address = link(admin)
    token = address.split("/")[2]
    row = Invitation.objects.values().get()
    assert not any(token in str(value) for value in row.values())
    assert not any(token in str(one.facts) for one in AuditEvent.objects.all())


def test_all_that_cannot_be_used_looks_the_same(admin, ada, bob, team, client):
    now = timezone.now()
    gone = {name: link(admin) for name in ("expired", "revoked", "used")}
    rows = {name: Invitation.objects.order_by("pk")[number] for number, name in enumerate(gone)}
    Invitation.objects.filter(pk=rows["expired"].pk).update(expires_at=now)
    Invitation.objects.filter(pk=rows["revoked"].pk).update(revoked_at=now)
    Invitation.objects.filter(pk=rows["used"].pk).update(used=1)
    gone["unknown"] = "/invitation/" + "a" * 43 + "/"
    gone["strange"] = "/invitation/" + "ü" * 300 + "/"
    gone["demoted"] = link(ada, namespace=team)
    member_add_manager(team, bob)
    member_change(namespace=team, user=ada, role=Role.MEMBER, actor=admin)
    answers = {name: client.get(address) for name, address in gone.items()}
    assert {one.status_code for one in answers.values()} == {410}
    nonce = re.compile(r"nonce[^>]*|csrf[^>]*")
    assert len({nonce.sub("", one.content.decode()) for one in answers.values()}) == 1
    for address in gone.values():
        assert client.post(address, GOOD).status_code == 410
    assert not User.objects.filter(username="grace").exists()


def member_add_manager(team, user):
    Membership.objects.create(namespace=team, user=user, role=Role.MANAGER)


def test_a_locked_makers_invitation_is_void(admin, ada, team, client):
    second = User.objects.create_user("root", is_staff=True)
    address = link(second)
    user_change(user=second, actor=admin, is_active=False)
    assert client.post(address, GOOD).status_code == 410
    client.force_login(admin)
    assert "Its link is refused: its creator is locked" in client.get(PAGE).content.decode()


@pytest.mark.parametrize(
    "change",
    [{"password": "12345678", "again": "12345678"}, {"again": "different"}, {"username": "ada"}, {"username": "a@b"},
     {"username": ""}, {"username": "x" * 999}, {"password": "grace1234", "again": "grace1234"}],
)  # fmt: skip
def test_rules_of_names_and_passwords_hold_and_no_place_is_used_up(admin, ada, client, change):
    address = link(admin)
    answer = client.post(address, GOOD | change)
    assert answer.status_code == 200
    assert "invalid-feedback" in answer.content.decode() or "alert-danger" in answer.content.decode()
    assert Invitation.objects.get().used == 0
    assert client.post(address, GOOD).status_code == 302


def test_a_last_place_is_taken_once(admin, client):
    address = link(admin)
    assert client.post(address, GOOD).status_code == 302
    client.logout()
    assert client.post(address, GOOD | {"username": "eve"}).status_code == 410
    assert not User.objects.filter(username="eve").exists()


def test_who_is_signed_in_joins_by_a_button(admin, ada, bob, team, client):
    address = link(ada, namespace=team, role=Role.MEMBER)
    client.force_login(bob)
    assert "Join team" in client.get(address).content.decode()
    assert not Membership.objects.filter(user=bob, namespace=team).exists()
    assert client.post(address).status_code == 302
    assert Membership.objects.get(user=bob, namespace=team).role == Role.MEMBER
    second = link(ada, namespace=team, role=Role.MANAGER)
    assert "member of vision already" in client.post(second).content.decode()
    assert Membership.objects.get(user=bob, namespace=team).role == Role.MEMBER
    assert Invitation.objects.order_by("-pk").first().used == 0
    assert "You have an account" in client.post(link(admin)).content.decode()


def test_managers_invite_to_their_own_team_alone(admin, ada, bob, team, client, signed_in):
    other = team_create(slug="speech", title="", manager=admin, actor=admin)
    api = signed_in(ada)
    assert api.post(API, {"namespace": "vision", "role": "viewer"}).status_code == 201
    assert api.post(API, {"namespace": "speech"}).status_code == 404
    assert api.post(API, {"namespace": str(other.pk)}).status_code == 404
    assert api.post(API, {}).json()["errors"][0]["field"] == "namespace"
    assert api.post(API, {"namespace": "ada"}).json()["code"] == "personal_namespace"
    hidden = signed_in(admin).post(API, {"namespace": "speech"}).json()
    assert [one["namespace"] for one in api.get(API).json()["results"]] == [str(team.pk)]
    assert api.delete(f"{API}{hidden['id']}/").status_code == 404
    client.force_login(ada)
    page = client.get(f"/namespaces/{team.pk}/invitations/")
    assert "All invitations" in page.content.decode()
    assert client.post(f"/invitations/{hidden['id']}/revoke/").status_code == 404
    assert Invitation.objects.get(pk=hidden["id"]).revoked_at is None
    Membership.objects.create(namespace=team, user=bob)
    assert signed_in(bob).post(API, {"namespace": "vision", "role": "manager"}).status_code == 403
    assert signed_in(bob).get(API).json()["results"] == []


def test_bounds_of_a_wish(admin, signed_in):
    api = signed_in(admin)
    for wish, field in [
        ({"uses": 0}, "uses"), ({"uses": 101}, "uses"), ({"expires_in": 60}, "expires_in"),
        ({"expires_in": 91 * 86_400}, "expires_in"), ({"email": "nonsense"}, "email"), ({"role": "owner"}, "role"),
        ({"email": "a@example.org", "uses": 2}, "uses"), ({"email": "a" * 300 + "@example.org"}, "email"),
        ({"is_staff": True}, "is_staff"), ({"namespace": "x" * 64}, "namespace"),
    ]:  # fmt: skip
        answer = api.post(API, wish, format="json")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, field), wish
    assert api.post(API, {"email": "a\0@example.org"}, format="json").status_code == 400
    assert not Invitation.objects.exists()


def test_a_mail_carries_the_link_and_the_address_counts(admin, client, settings, signed_in):
    settings.YARDMASTER_SENDS_MAIL = True
    answer = signed_in(admin).post(API, {"email": "grace@example.org"}, format="json").json()
    assert answer["sent"]
    assert mail.outbox[0].to == ["grace@example.org"]
    assert answer["url"] in mail.outbox[0].body
    address = "/invitation/" + answer["url"].split("/invitation/")[1]
    client.post(address, GOOD | {"email": "Grace@example.org"})
    assert User.objects.get(username="grace").email.casefold() == "grace@example.org"


def test_an_address_that_no_administrator_gave_waits_for_its_reader(admin, ada, team, client, settings):
    settings.YARDMASTER_SENDS_MAIL, settings.YARDMASTER_SIGN_UP = True, "open"
    address = link(ada, namespace=team, email="grace@example.org")
    client.post(address, GOOD | {"email": "grace@example.org"})
    grace = User.objects.get(username="grace")
    assert (grace.email, grace.pending_email) == ("", "grace@example.org")


def test_a_managers_invitation_makes_no_account_where_not_everyone_may_sign_up(ada, bob, team, client):
    address = link(ada, namespace=team)
    assert "Sign in to join" in client.get(address).content.decode()
    client.post(address, GOOD)
    assert not User.objects.filter(username="grace").exists(), "each account would have a quota of its own"
    with pytest.raises(Conflict):
        invitation_accept(token=address.split("/")[2], username="grace", password="correct horse 9")
    assert Invitation.objects.get().used == 0
    client.force_login(bob)
    assert client.post(address).status_code == 302
    assert Membership.objects.filter(namespace=team, user=bob).exists()


def test_closed_refuses_invitations_too(admin, client, settings, signed_in):
    address = link(admin)
    settings.YARDMASTER_SIGN_UP = "closed"
    assert client.get(address).status_code == 410
    assert client.post(address, GOOD).status_code == 410
    assert signed_in(admin).post(API, {}).json()["code"] == "sign_up_closed"
    client.force_login(admin)
    assert "Invitations are switched off" in client.get(PAGE).content.decode()


def test_a_revoked_one_stays_in_the_list(admin, client):
    address = link(admin)
    client.force_login(admin)
    one = Invitation.objects.get()
    assert client.post(f"/invitations/{one.pk}/revoke/").status_code == 302
    assert client.post(f"/invitations/{one.pk}/revoke/").status_code == 302
    assert AuditEvent.objects.filter(action="invitation.revoke").count() == 1
    assert "revoked" in client.get(PAGE).content.decode()
    client.logout()
    assert client.get(address).status_code == 410


def test_guesses_and_new_invitations_are_counted(admin, client, settings, signed_in, monkeypatch):
    settings.YARDMASTER_SIGN_IN_LIMITS = {**settings.YARDMASTER_SIGN_IN_LIMITS, "ADDRESS": 6}
    codes = [client.post(f"/invitation/{'a' * number}/", GOOD).status_code for number in range(1, 6)]
    assert codes == [410, 410, 410, 429, 429]
    monkeypatch.setattr("apps.namespaces.invitations.MOST_PER_HOUR", 2)
    assert [signed_in(admin).post(API, {}).status_code for _ in "abc"] == [201, 201, 429]


def test_a_list_of_many_takes_few_queries(admin, client, django_assert_max_num_queries):
    Invitation.objects.bulk_create(
        Invitation(digest=str(n), created_by=admin, created_at=timezone.now(), expires_at=timezone.now() + timedelta(1))
        for n in range(60)
    )
    client.force_login(admin)
    client.get(PAGE)
    with django_assert_max_num_queries(8):
        assert client.get(PAGE).content.decode().count("0 of 1 used") == 50
