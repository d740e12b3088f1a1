"""Signing in and out: by password, by a link that works once, and never by accident."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from apps.accounts.models import SignInLink, User
from apps.accounts.services import first_administrator, sign_in_link_create, sign_in_link_use
from tests.integration.conftest import PASSWORD

pytestmark = pytest.mark.django_db
LOGIN = "/accounts/login/"


def is_signed_in(client) -> bool:
    return client.get("/api/v1/me/").status_code == 200


class TestPassword:
    @pytest.mark.parametrize("name", ["ada", "ADA", "ada@example.org"])
    def test_a_name_or_address_signs_in(self, ada, client, name):
        assert client.post(LOGIN, {"login": name, "password": PASSWORD}).headers["Location"] == "/"
        assert is_signed_in(client)

    @pytest.mark.parametrize("name", ["ada", "nobody"])
    def test_a_wrong_password_and_an_unknown_name_look_the_same(self, ada, client, name):
        page = client.post(LOGIN, {"login": name, "password": "wrong wrong"}).content.decode()
        assert "not correct" in page
        assert not is_signed_in(client)

    def test_guessing_is_slowed(self, ada, client):
        for _ in range(6):
            client.post(LOGIN, {"login": "ada", "password": "wrong wrong"})
        client.post(LOGIN, {"login": "ada", "password": PASSWORD})
        assert not is_signed_in(client)

    @pytest.mark.parametrize(
        "target",
        ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "http:evil", "\t//evil"],
    )
    def test_nobody_is_sent_elsewhere_after_signing_in(self, ada, client, target):
        response = client.post(f"{LOGIN}?next=x", {"login": "ada", "password": PASSWORD, "next": target})
        assert response.headers["Location"] == "/"

    def test_one_comes_back_to_where_one_was(self, ada, client):
        response = client.get("/")
        assert response.headers["Location"] == f"{LOGIN}?next=/"

    def test_a_session_planted_before_is_worthless_after(self, ada, client):
        client.get(LOGIN)
        session = client.session
        session["planted"] = True
        session.save()
        client.cookies["yardmaster_session"] = session.session_key
        client.post(LOGIN, {"login": "ada", "password": PASSWORD})
        planted = Client()
        planted.cookies["yardmaster_session"] = session.session_key
        assert is_signed_in(client)
        assert not is_signed_in(planted)

    @pytest.mark.parametrize("name", ["x" * 10_000, "\u202eada", "../../x", "<script>alert(1)</script>", "a\x00b"])
    def test_a_hostile_name_is_shown_harmlessly_or_not_at_all(self, db, client, name):
        response = client.post(LOGIN, {"login": name, "password": "wrong wrong"})
        assert response.status_code == 200
        assert "<script>alert" not in response.content.decode()

    def test_signing_out_takes_a_post(self, ada, client):
        client.force_login(ada)
        client.get("/accounts/logout/")
        assert is_signed_in(client)
        client.post("/accounts/logout/")
        assert not is_signed_in(client)


class TestLink:
    def test_fetching_it_does_not_spend_it(self, ada, client):
        link = sign_in_link_create(ada)
        for method in (client.get, client.head, client.get):
            assert method(link).status_code == 200
        assert not is_signed_in(client)
        assert client.post(link).headers["Location"] == "/"
        assert is_signed_in(client)

    def test_it_works_once(self, ada, client):
        link = sign_in_link_create(ada)
        client.post(link)
        other = Client()
        response = other.post(link)
        assert response.status_code == 410
        assert "once" in response.content.decode()
        assert not is_signed_in(other)

    def test_it_works_for_fifteen_minutes(self, ada, client):
        link = sign_in_link_create(ada)
        with time_machine.travel(timezone.now() + timedelta(minutes=15, seconds=1), tick=False):
            assert client.get(link).status_code == client.post(link).status_code == 410
        assert not is_signed_in(client)

    @pytest.mark.parametrize("token", ["x", "x" * 5000, "%ff", "é", "'--"])
    def test_an_unknown_one_says_what_to_do(self, db, client, token):
        response = client.post(f"/sign-in/{token}/")
        assert response.status_code == 410
        assert "administrator" in response.content.decode()

    def test_only_its_hash_is_kept_and_it_leaks_through_no_referrer(self, ada, client):
        link = sign_in_link_create(ada)
        token = link.rstrip("/").rpartition("/")[2]
        assert token not in str(SignInLink.objects.values())
        response = client.get(link)
        assert response.headers["Referrer-Policy"] == "strict-origin"
        assert "no-store" in response.headers["Cache-Control"]

    def test_somebody_elses_session_ends_with_it(self, ada, bob, client):
        client.force_login(bob)
        old = client.session.session_key
        client.post(sign_in_link_create(ada))
        assert client.get("/api/v1/me/").json()["username"] == "ada"
        assert client.session.session_key != old

    def test_of_two_uses_at_once_one_succeeds(self, ada):
        token = sign_in_link_create(ada).rstrip("/").rpartition("/")[2]
        now = timezone.now()
        assert [sign_in_link_use(token, now), sign_in_link_use(token, now)] == [ada, None]

    def test_a_form_from_another_site_does_not_spend_it(self, ada):
        client = Client(enforce_csrf_checks=True)
        assert client.post(sign_in_link_create(ada)).status_code == 403
        assert SignInLink.objects.get().used_at is None


class TestFirstAdministrator:
    def test_it_is_made_once_with_a_link(self, db, capsys, client):
        call_command("first_admin")
        link = capsys.readouterr().out.split()[-1]
        client.post(link)
        assert client.get("/api/v1/me/").json()["is_staff"] is True
        call_command("first_admin", username="second")
        assert "already" in capsys.readouterr().out
        assert User.objects.count() == 1
        assert first_administrator() is None

    def test_a_password_file_gives_a_password(self, db, tmp_path, client):
        file = tmp_path / "password"
        file.write_text(f"{PASSWORD}\n")
        call_command("first_admin", username="root", password_file=file)
        client.post(LOGIN, {"login": "root", "password": PASSWORD})
        assert is_signed_in(client)

    def test_a_weak_or_missing_password_file_makes_nobody(self, db, tmp_path):
        weak = tmp_path / "weak"
        weak.write_text("123")
        for file in (weak, tmp_path / "none"):
            with pytest.raises(CommandError):
                call_command("first_admin", password_file=file)
        assert not User.objects.exists()
