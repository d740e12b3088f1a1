"""The admin area's pages of users, teams and removals: what they show, what they do, and whom they refuse."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from django.core import mail
from django.utils import timezone

from apps.accounts.models import Browser, PersonalToken, User
from apps.accounts.services import token_create, user_create
from apps.audit.models import AuditEvent
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.services import team_create
from apps.removals.models import Removal
from apps.removals.worker import removal_carry_out

pytestmark = pytest.mark.django_db
USERS, TEAMS, NEW_TEAM = "/admin/users/", "/admin/teams/", "/admin/teams/new/"


@pytest.fixture
def at(admin, client):
    """The administrator at the pages."""
    client.force_login(admin)
    return client


def text_of(answer) -> str:
    return answer.content.decode()


def press(at, user: User, action: str) -> str:
    return text_of(at.post(f"{USERS}{user.pk}/do/{action}/", follow=True))


def names(answer) -> list[str]:
    return [one.username for one in answer.context["page"].rows]


class TestList:
    def test_it_is_searched_and_filtered(self, at, admin, ada, bob):
        User.objects.filter(pk=bob.pk).update(is_active=False)
        assert names(at.get(USERS, {"search": "ADA@"})) == ["ada"]
        assert names(at.get(USERS, {"state": "locked"})) == ["bob"]
        assert names(at.get(USERS, {"state": "administrators"})) == ["admin"]
        assert set(names(at.get(USERS, {"state": "active"}))) == {"admin", "ada"}
        assert "No users match" in text_of(at.get(USERS, {"search": "not-one"}))
        assert at.get(USERS, {"search": "a" * 5_000}).status_code == 200
        assert at.get(USERS, {"order": "password"}).status_code == 400

    def test_last_use_is_the_newest_of_every_kind(self, at, ada, bob):
        now = timezone.now()
        User.objects.filter(pk=ada.pk).update(last_login=now - timedelta(days=9))
        token_create(user=ada, name="t", scopes=[], expires_in=None)
        PersonalToken.objects.filter(user=ada).update(last_used_at=now - timedelta(days=2))
        rows = at.get(USERS, {"order": "-last_use", "state": "active"}).context["page"].rows
        found = {one.username: one.last_use for one in rows}
        assert found["ada"] == now - timedelta(days=2)
        assert found["bob"].year == 1970
        assert [one.username for one in rows][-1] == "bob"
        assert "never" in text_of(at.get(USERS, {"search": "bob"}))

    @pytest.mark.parametrize("order", ["username", "-username", "joined", "-joined", "last_use", "-jobs", "storage"])
    def test_every_order_pages_forth_and_back_without_gaps(self, at, monkeypatch, order):
        monkeypatch.setattr("apps.people.user_pages.AT_ONCE", 3)
        for number in range(7):
            User.objects.create_user(f"user-{number}")
        whole, cursor, pages = [], "", []
        while cursor is not None:
            page = at.get(USERS, {"order": order, "cursor": cursor}).context["page"]
            pages.append([one.username for one in page.rows])
            whole += pages[-1]
            last, cursor = page, page.older_cursor
        assert sorted(whole) == sorted(User.objects.values_list("username", flat=True))
        back = at.get(USERS, {"order": order, "cursor": last.newer_cursor}).context["page"]
        assert [one.username for one in back.rows] == pages[-2]

    def test_a_list_of_many_takes_few_queries(self, at, django_assert_max_num_queries):
        for number in range(60):
            User.objects.create_user(f"user-{number}")
        for order in ("-joined", "-jobs", "storage"):
            with django_assert_max_num_queries(8):
                assert len(names(at.get(USERS, {"order": order}))) == 50

    def test_a_cursor_of_a_user_who_is_gone_is_refused(self, at, ada):
        assert at.get(USERS, {"cursor": "nonsense"}).status_code == 400


class TestNewUser:
    def test_the_link_is_shown_once_and_signs_in(self, at, client):
        page = text_of(at.post(f"{USERS}new/", {"username": "grace", "email": "grace@example.org"}))
        path = re.search(r"http://[^/]+(/sign-in/[^<\s]+)", page)
        assert path
        made = User.objects.get(username="grace")
        assert "/sign-in/" not in text_of(at.get(f"{USERS}{made.pk}/"))
        client.logout()
        assert client.post(path[1]).status_code == 302
        assert text_of(client.get("/account/")).count("grace")

    def test_a_mail_lets_a_user_without_password_set_one(self, at, settings):
        settings.YARDMASTER_SENDS_MAIL = True
        wish = {"username": "grace", "email": "grace@example.org", "sends_mail": "on"}
        assert "An e-mail was sent to grace@example.org" in text_of(at.post(f"{USERS}new/", wish, follow=True))
        assert mail.outbox[0].to == ["grace@example.org"]
        assert "/accounts/password/reset/key/" in mail.outbox[0].body
        assert AuditEvent.objects.filter(action="user.reset_mail").count() == 1

    def test_what_is_wrong_stands_at_its_field(self, at, ada):
        assert "has this name already" in text_of(at.post(f"{USERS}new/", {"username": "ADA"}))
        assert "Enter the address to which" in text_of(at.post(f"{USERS}new/", {"username": "g", "sends_mail": "on"}))
        assert at.post(f"{USERS}new/", {"username": "x" * 400}).status_code == 200
        assert User.objects.count() == 2


class TestOneUser:
    def test_it_shows_the_facts_in_few_queries(self, at, ada, admin, django_assert_max_num_queries):
        team_create(slug="vision", title="", manager=ada, actor=admin)
        for number in range(20):
            token_create(user=ada, name=f"token {number}", scopes=["read"], expires_in=None)
        at.get(f"{USERS}{ada.pk}/")
        with django_assert_max_num_queries(12):
            page = text_of(at.get(f"{USERS}{ada.pk}/"))
        for words in ("vision", "token 7", "ada@example.org", "Not signed in anywhere"):
            assert words in page

    def test_rights_are_given_and_taken_but_one_administrator_stays(self, at, ada, admin):
        assert "is now an administrator" in press(at, ada, "promote")
        assert "no longer an administrator" in press(at, ada, "demote")
        assert "is the only administrator left" in press(at, admin, "demote")
        facts = AuditEvent.objects.filter(action="user.change").order_by("pk").first().facts
        assert (facts["is_staff"], facts["is_staff_before"]) == (True, False)

    def test_locking_and_unlocking(self, at, ada, admin):
        assert "ada is locked. Jobs continue." in press(at, ada, "suspend")
        assert "0 jobs being stopped" in press(at, ada, "suspend-and-stop")
        assert "Unlock" in text_of(at.get(f"{USERS}{ada.pk}/"))
        at.post(f"{USERS}{ada.pk}/link/")
        assert not ada.sign_in_links.exists()
        assert "can sign in again" in press(at, ada, "activate")
        assert "cannot lock yourself out" in press(at, admin, "suspend")

    def test_signing_out_everywhere_ends_sessions_and_tokens_alone(self, at, ada, signed_in, with_token):
        session, token = signed_in(ada), with_token(ada)
        assert session.get("/api/v1/me/").status_code == token.get("/api/v1/me/").status_code == 200
        assert "signed out everywhere" in press(at, ada, "sign-out")
        assert session.get("/api/v1/me/").status_code == token.get("/api/v1/me/").status_code == 401
        assert User.objects.get(pk=ada.pk).is_active
        assert signed_in(User.objects.get(pk=ada.pk)).get("/api/v1/me/").status_code == 200

    def test_a_lost_second_factor_is_reset(self, at, ada, admin):
        assert "<dt>Two-step sign-in</dt><dd>off</dd>" in text_of(at.get(f"{USERS}{ada.pk}/"))
        assert "has not set up two-step" in press(at, ada, "reset-second-factor")
        for kind in (Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES):
            Authenticator.objects.create(user=ada, type=kind, data={})
        page = text_of(at.get(f"{USERS}{ada.pk}/"))
        assert "<dt>Two-step sign-in</dt><dd>authenticator app</dd>" in page
        assert "Reset two-step sign-in" in page
        assert "Two-step sign-in of ada was reset" in press(at, ada, "reset-second-factor")
        assert not Authenticator.objects.exists()
        assert AuditEvent.objects.get(action="second_factor.reset").facts["kinds"] == ["recovery_codes", "totp"]
        assert "cannot reset your own" in press(at, admin, "reset-second-factor")

    def test_tokens_are_revoked_and_the_address_changed(self, at, ada, bob):
        token_create(user=ada, name="t", scopes=[], expires_in=None)
        assert "Revoked 1 token of ada" in press(at, ada, "revoke-tokens")
        at.post(f"{USERS}{ada.pk}/email/", {"email": "new@example.org"})
        assert User.objects.get(pk=ada.pk).email == "new@example.org"
        assert "has this address already" in text_of(at.post(f"{USERS}{ada.pk}/email/", {"email": bob.email}))

    def test_an_unknown_action_does_nothing(self, at, ada):
        assert "There is no such action" in press(at, ada, "delete")
        assert User.objects.filter(pk=ada.pk, is_active=True).exists()


class TestTeams:
    def test_a_team_of_ten_is_made_at_once(self, at, ada):
        people = [user_create(username=f"Person-{number}") for number in range(10)]
        text = "\n".join(one.username.upper() for one in people[:5]) + "," + ", ".join(p.username for p in people[5:])
        wish = {"slug": "vision", "title": "Vision", "manager": "ada", "members": f"{text}\nada", "role": "member"}
        assert at.post(NEW_TEAM, wish).status_code == 302
        team = Namespace.objects.get(slug="vision")
        assert team.memberships.count() == 11
        assert team.memberships.get(user=ada).role == Role.MANAGER
        assert team.memberships.filter(role=Role.MEMBER).count() == 10

    def test_one_bad_name_and_nothing_is_made_and_each_is_listed(self, at, ada, bob):
        User.objects.filter(pk=bob.pk).update(is_active=False)
        wish = {"slug": "vision", "members": f"ada, bob, nemo, {'x' * 400}"}
        page = text_of(at.post(NEW_TEAM, wish))
        assert "There is no user nemo." in page
        assert "bob is locked." in page
        assert not Namespace.objects.filter(slug="vision").exists()
        assert "There is no such user" in text_of(at.post(NEW_TEAM, {"slug": "v", "manager": "nemo"}))
        assert "more than 200" in text_of(at.post(NEW_TEAM, {"slug": "v", "members": ",".join(map(str, range(300)))}))

    def test_the_list_is_sorted_by_what_teams_hold_in_few_queries(
        self, at, ada, bob, admin, django_assert_max_num_queries
    ):
        for number in range(60):
            team_create(slug=f"team-{number:02}", title="", manager=ada, actor=admin)
        Membership.objects.create(namespace=Namespace.objects.get(slug="team-33"), user=bob)
        for order in ("-members", "name", "-jobs", "storage", "-created"):
            with django_assert_max_num_queries(8):
                rows = at.get(TEAMS, {"order": order}).context["page"].rows
            assert len(rows) == 50
            assert order != "-members" or (rows[0].slug, rows[0].members) == ("team-33", 2)
        assert [one.slug for one in at.get(TEAMS, {"search": "M-07"}).context["page"].rows] == ["team-07"]
        assert "No teams match" in text_of(at.get(TEAMS, {"search": "none"}))

    def test_a_manager_adds_many_and_a_member_may_not(self, ada, bob, admin, client):
        team = team_create(slug="vision", title="", manager=ada, actor=admin)
        address = f"/namespaces/{team.pk}/members/add-many/"
        user_create(username="grace")
        client.force_login(ada)
        assert "Add several" in text_of(client.get(f"/namespaces/{team.pk}/"))
        assert "There is no user nemo" in text_of(client.post(address, {"members": "bob nemo, nemo", "role": "member"}))
        assert team.memberships.count() == 1
        assert client.post(address, {"members": "bob\ngrace", "role": "viewer"}).status_code == 302
        assert team.memberships.filter(role=Role.VIEWER).count() == 2
        assert client.post(address, {"members": "bob", "role": "owner"}).status_code == 200
        client.force_login(bob)
        assert client.post(address, {"members": "bob", "role": "manager"}).status_code == 403
        assert team.memberships.get(user=bob).role == Role.VIEWER


class TestRemoving:
    def test_the_preview_changes_nothing_and_says_what_goes(self, at, ada, admin):
        team_create(slug="vision", title="", manager=ada, actor=admin)
        token_create(user=ada, name="t", scopes=[], expires_in=None)
        page = text_of(at.get(f"{USERS}{ada.pk}/remove/"))
        assert "ada is the only manager of vision." in page
        assert "Personal tokens" in page
        assert User.objects.get(pk=ada.pk).is_active
        assert not Removal.objects.exists()

    @pytest.mark.parametrize("name", ["", "ADA", "ad", "ada\u200b", "bob", "x" * 1_000])
    def test_another_name_than_the_users_removes_no_one(self, at, ada, bob, name):
        page = text_of(at.post(f"{USERS}{ada.pk}/remove/", {"name": name, "data": "delete"}))
        assert "is-invalid" in page
        assert not Removal.objects.exists()
        assert User.objects.get(pk=ada.pk).is_active

    def test_the_name_is_typed_and_the_report_follows(self, at, ada):
        token_create(user=ada, name="t", scopes=[], expires_in=None)
        answer = at.post(f"{USERS}{ada.pk}/remove/", {"name": "ada", "data": "keep"})
        removal = Removal.objects.get()
        assert answer["Location"] == f"/admin/removals/{removal.pk}/"
        assert "In progress" in text_of(at.get(answer["Location"]))
        assert "is being removed" in text_of(at.get(f"{USERS}{ada.pk}/"))
        removal_carry_out(removal.pk)
        page = text_of(at.get(answer["Location"]))
        assert "Everything was removed" in page
        assert "Personal tokens" in page
        assert not User.objects.filter(pk=ada.pk).exists()

    def test_what_speaks_against_it_is_said_on_the_page(self, at, ada, admin):
        team_create(slug="vision", title="", manager=ada, actor=admin)
        page = text_of(at.post(f"{USERS}{ada.pk}/remove/", {"name": "ada", "data": "keep"}))
        assert "only manager of vision" in page
        assert "cannot delete yourself" in text_of(at.post(f"{USERS}{admin.pk}/remove/", {"name": "admin"} | KEEP))
        assert not Removal.objects.exists()

    def test_a_team_goes_in_the_same_way(self, at, ada, admin):
        team = team_create(slug="vision", title="", manager=ada, actor=admin)
        address = f"{TEAMS}{team.pk}/remove/"
        assert "Remove team" in text_of(at.get(address))
        assert "is-invalid" in text_of(at.post(address, {"name": "ada"} | KEEP))
        assert at.post(address, {"name": "vision"} | KEEP).status_code == 302
        assert Removal.objects.get().slug == "vision"
        assert at.get(f"{TEAMS}{ada.personal_namespace.pk}/remove/").status_code == 404

    def test_the_old_address_leads_to_the_new_one(self, at):
        assert at.get("/removals/")["Location"] == "/admin/removals/"


KEEP = {"data": "keep"}


def test_others_are_refused_everywhere_and_change_nothing(ada, bob, admin, client):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    one, teams = f"{USERS}{bob.pk}/", f"{TEAMS}{team.pk}/"
    reads = [USERS, f"{USERS}new/", one, f"{one}remove/", TEAMS, NEW_TEAM, f"{teams}remove/", "/admin/invitations/"]
    actions = ["promote", "demote", "suspend", "suspend-and-stop", "activate", "sign-out", "revoke-tokens"]
    writes = [f"{USERS}new/", f"{one}link/", f"{one}email/", *(f"{one}do/{action}/" for action in actions)]
    writes += [f"{one}remove/", NEW_TEAM, f"{teams}remove/", "/admin/invitations/"]
    for address in reads:
        assert client.get(address).status_code == 302, address
    client.force_login(ada)
    users, events = User.objects.count(), AuditEvent.objects.count()
    for address in reads:
        assert client.get(address).status_code == 403, address
    for address in writes:
        wish = {"name": "bob", "data": "delete", "username": "eve", "slug": "mine", "email": "eve@example.org"}
        assert client.post(address, wish).status_code == 403, address
    assert (User.objects.count(), AuditEvent.objects.count(), Removal.objects.count()) == (users, events, 0)
    assert not Browser.objects.filter(user=bob).exists()


def test_a_form_of_another_site_is_refused(ada, admin):
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin)
    assert strict.post(f"{USERS}{ada.pk}/do/suspend/").status_code == 403
    assert strict.post(f"{USERS}{ada.pk}/remove/", {"name": "ada"} | KEEP).status_code == 403
    assert User.objects.get(pk=ada.pk).is_active
