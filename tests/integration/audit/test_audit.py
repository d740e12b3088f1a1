"""The audit: written with the deed, never changed, read by those whom it concerns."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest
import time_machine
from django.apps import apps
from django.contrib.auth.signals import user_login_failed
from django.db import transaction
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.accounts.services import token_create, user_create
from apps.administration.audit_actions import ACTIONS
from apps.audit.models import AuditEvent
from apps.audit.services import download_record, events_clean, record
from apps.hosting.models import Hosted
from apps.namespaces.selectors import reading_note
from apps.namespaces.services import team_create
from tests.integration.conftest import PASSWORD

pytestmark = pytest.mark.django_db
URL = "/api/v1/audit/"


def test_an_event_is_neither_changed_nor_deleted(ada):
    record(ada, "job.stop", "job:1", namespace=ada.personal_namespace, why="bored")
    event = AuditEvent.objects.get(action="job.stop")
    assert (event.actor_name, event.namespace_id, event.facts) == ("ada", ada.personal_namespace.pk, {"why": "bored"})
    event.action = "job.start"
    with pytest.raises(TypeError):
        event.save()
    with pytest.raises(TypeError):
        event.delete()


def test_a_deed_that_was_rolled_back_was_not_done(ada):
    before = AuditEvent.objects.count()
    with transaction.atomic():
        record(ada, "job.stop", "job:1")
        transaction.set_rollback(True)
    assert AuditEvent.objects.count() == before


def test_administrators_read_all_and_filter(admin, signed_in):
    user_create(username="eve", actor=admin)
    record(None, "portal.start", "portal")
    rows = signed_in(admin).get(URL, {"action": "user.create", "actor": str(admin.pk)}).json()["results"]
    assert [(row["actor_name"], row["facts"]["username"]) for row in rows] == [("admin", "eve")]
    rows = signed_in(admin).get(URL, {"action": "portal.start"}).json()["results"]
    assert [row["actor"] for row in rows] == [None]


def test_strangers_read_nothing_of_others(admin, ada, bob, signed_in):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    record(admin, "user.create", "user:1")
    assert "namespace.create" in {row["action"] for row in signed_in(ada).get(URL).json()["results"]}
    assert "user.create" not in {row["action"] for row in signed_in(ada).get(URL).json()["results"]}
    assert {row["action"] for row in signed_in(bob).get(URL).json()["results"]} <= {"session.begin"}
    assert signed_in(bob).get(URL, {"namespace": str(team.pk)}).json()["results"] == []


@pytest.mark.parametrize("query", [{"actor": "x"}, {"namespace": "1"}, {"subject": "x" * 201}])
def test_a_filter_that_will_not_do_is_named(admin, signed_in, query):
    response = signed_in(admin).get(URL, query)
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == next(iter(query))


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_it_cannot_be_written_from_outside(admin, signed_in, method):
    assert getattr(signed_in(admin), method)(URL, {"action": "x"}).status_code == 405


def told(action: str) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(action=action).order_by("-pk"))


MADE_UP = {
    "store.noun": ("code", "dataset", "model"),
    "row.KIND": tuple(kind.KIND for kind in apps.get_models() if issubclass(kind, Hosted)),
    "noun": ("user", "namespace"),
    "outcome": ("removed", "removal_called_off"),
}
"""What stands in the actions that the source puts together; what a helper of the same file is given is read there."""


def _recorded_in(path: Path) -> set[str]:
    """Of an action that a helper of the file is given: every text in the file that looks like one."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    texts = [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    calls = [one for one in nodes if isinstance(one, ast.Call) and len(one.args) > 1]
    helped = {one.args[1].value for one in calls if getattr(one.func, "id", "") in ("_record", "_note")
              and isinstance(one.args[1], ast.Constant)}  # fmt: skip
    given = {**MADE_UP, "verb": helped, "action": helped}
    found: set[str] = set()
    for action in (one.args[1] for one in calls if getattr(one.func, "id", "") == "record"):
        if isinstance(action, ast.Name):
            found |= {text for text in texts if re.fullmatch(r"[a-z_]+\.[a-z_]+", text)}
        else:
            values = action.values if isinstance(action, ast.JoinedStr) else [action]
            parts = [[one.value] if isinstance(one, ast.Constant) else given[ast.unparse(one.value)] for one in values]
            found |= {"".join(each) for each in product(*parts)}
    return found


def test_every_action_that_is_recorded_has_words():
    assert len(set(MADE_UP["row.KIND"])) == len(MADE_UP["row.KIND"]) > 0
    found = {action for path in Path("apps").rglob("*.py") for action in _recorded_in(path)}
    assert {"job.create", "user.change", "session.begin", "service.extend", "model.change"} <= found
    assert found <= set(ACTIONS), found - set(ACTIONS)


def failed_sign_in(name: str) -> None:
    """As where a name and a password are refused."""
    user_login_failed.send(__name__, credentials={"username": name}, request=None)


class TestSignIns:
    def test_signing_in_and_out_is_recorded_with_address_and_agent(self, ada):
        browser = Client(REMOTE_ADDR="192.0.2.7", headers={"User-Agent": "Mozilla/5.0\x00 " + "x" * 500})
        browser.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
        browser.post("/accounts/logout/")
        for action in ("session.begin", "session.end"):
            (event,) = told(action)
            assert (event.actor_name, event.address, event.subject) == ("ada", "192.0.2.7", f"user:{ada.pk}")
            assert event.agent.startswith("Mozilla/5.0 x")
            assert len(event.agent) == 200

    @pytest.mark.parametrize("name", ["ada", "ADA@example.org", "nobody", "<b>=cmd()</b>", "x" * 250])
    def test_failures_are_counted_in_one_row_per_name_address_and_minute(self, ada, name):
        with time_machine.travel(timezone.now().replace(second=5), tick=False):
            for _ in range(3):
                Client(REMOTE_ADDR="192.0.2.7").post("/accounts/login/", {"login": name, "password": "wrong wrong"})
            Client(REMOTE_ADDR="192.0.2.8").post("/accounts/login/", {"login": name, "password": "wrong wrong"})
            wish = {"username": name, "password": "wrong wrong", "name": "cli"}
            APIClient(REMOTE_ADDR="192.0.2.7").post("/api/v1/auth/token/", wish)
        assert [(one.address, one.count) for one in told("session.fail")] == [("192.0.2.8", 1), ("192.0.2.7", 4)]
        known = name.casefold() in ("ada", "ada@example.org")
        assert {one.subject for one in told("session.fail")} == {f"user:{ada.pk}" if known else "user"}
        assert {one.facts["name"] for one in told("session.fail")} == {name[:100]}
        assert {one.actor_id for one in told("session.fail")} == {None}

    def test_a_flood_of_names_fills_no_more_rows_than_the_settings_say(self, db, settings):
        settings.YARDMASTER_AUDIT_FAILURES_PER_HOUR = 5
        now = timezone.now().replace(minute=10, second=5)
        with time_machine.travel(now, tick=False):
            for n in range(50):
                failed_sign_in(f"name-{n}")
        rows = told("session.fail")
        assert len(rows) == 6
        assert sum(one.count for one in rows) == 50
        assert [one.facts for one in rows if one.count > 1] == [{"others": True}]
        with time_machine.travel(now + timedelta(hours=1), tick=False):
            failed_sign_in("later")
        assert told("session.fail")[0].facts == {"name": "later"}

    def test_an_account_is_named_however_many_other_names_are_tried(self, ada, admin, settings):
        settings.YARDMASTER_AUDIT_FAILURES_PER_HOUR = 5
        now = timezone.now().replace(minute=10, second=5)
        with time_machine.travel(now, tick=False):
            for n in range(20):
                failed_sign_in(f"name-{n}")
        with time_machine.travel(now + timedelta(minutes=1), tick=False):
            for n in range(3):
                wish = {"username": "ADA" if n else "ada@example.org", "password": "wrong wrong", "name": "cli"}
                APIClient(REMOTE_ADDR=f"192.0.2.{n}").post("/api/v1/auth/token/", wish)
            failed_sign_in("admin")
            failed_sign_in("name-21")
        named = [one for one in told("session.fail") if one.facts == {"others": True, "name": "ada"}]
        assert [(one.subject, one.address, one.count) for one in named] == [(f"user:{ada.pk}", "192.0.2.0", 3)]
        assert [one.facts["name"] for one in told("session.fail") if one.subject == f"user:{admin.pk}"] == ["admin"]
        assert [one.count for one in told("session.fail") if one.facts == {"others": True}] == [16]

    def test_the_whole_of_a_long_address_is_looked_up(self, ada):
        User.objects.filter(pk=ada.pk).update(email=f"{'a' * 60}@{'b' * 60}.example.org")
        failed_sign_in(f" {'a' * 60}@{'b' * 60}.EXAMPLE.org")
        assert [one.subject for one in told("session.fail")] == [f"user:{ada.pk}"]

    def test_a_wrong_present_password_is_recorded(self, ada):
        client = Client(REMOTE_ADDR="192.0.2.7")
        client.force_login(ada)
        new = {"password1": "another long password", "password2": "another long password"}
        with time_machine.travel(timezone.now().replace(minute=10), tick=False):
            client.post("/account/address/", {"email": "new@example.org", "password": "wrong wrong"})
            client.post("/accounts/password/change/", {"oldpassword": "wrong wrong", **new})
            (event,) = told("password.fail")
        assert (event.actor_id, event.address, event.count) == (ada.pk, "192.0.2.7", 2)
        client.post("/accounts/reauthenticate/", {"password": "wrong wrong"})
        assert [one.subject for one in told("session.fail")] == [f"user:{ada.pk}"]

    def test_a_made_up_forwarding_header_is_not_believed(self, ada):
        forged = Client(REMOTE_ADDR="192.0.2.7", headers={"X-Forwarded-For": "203.0.113.1"})
        forged.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
        assert told("session.begin")[0].address == "192.0.2.7"

    def test_a_trusted_proxy_says_where_a_request_comes_from(self, ada, settings):
        settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
        through = Client(REMOTE_ADDR="192.0.2.7", headers={"X-Forwarded-For": "198.51.100.1, 203.0.113.1"})
        through.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
        assert told("session.begin")[0].address == "203.0.113.1"

    def test_a_changed_password_is_recorded(self, ada, client):
        client.force_login(ada)
        wish = {"oldpassword": PASSWORD, "password1": "another long password", "password2": "another long password"}
        client.post("/accounts/password/change/", wish)
        assert [one.actor_name for one in told("password.change")] == ["ada"]

    def test_the_first_use_of_a_token_is_recorded_once(self, ada):
        token, secret = token_create(user=ada, name="ci", scopes=[], expires_in=None)
        for minutes in (0, 5):
            with time_machine.travel(timezone.now() + timedelta(minutes=minutes)):
                client = APIClient(REMOTE_ADDR="192.0.2.9")
                assert client.get("/api/v1/me/", HTTP_AUTHORIZATION=f"Bearer {secret}").status_code == 200
        assert [(one.subject, one.address) for one in told("token.first_use")] == [(f"token:{token.pk}", "192.0.2.9")]


class TestReading:
    def test_an_administrator_who_reads_others_data_is_recorded_once_an_hour(
        self, ada, admin, django_capture_on_commit_callbacks, django_assert_num_queries
    ):
        home = ada.personal_namespace
        now = timezone.now().replace(minute=30)
        with time_machine.travel(now, tick=False):
            for _ in range(3):
                with django_capture_on_commit_callbacks(execute=True):
                    reading_note(admin, "job", home.pk, home)
            with django_assert_num_queries(0):
                reading_note(admin, "job", home.pk, home)
        with time_machine.travel(now + timedelta(hours=1), tick=False):
            reading_note(admin, "job", home.pk, home)
        assert [(one.actor_name, one.subject, one.namespace_id) for one in told("administrator.read")] == [
            ("admin", f"job:{home.pk}", home.pk)
        ] * 2

    def test_reading_ones_own_or_as_a_member_is_not(self, ada, admin):
        team = team_create(slug="vision", title="", manager=admin, actor=admin)
        reading_note(admin, "namespace", team.pk, team)
        reading_note(admin, "namespace", admin.personal_namespace.pk, admin.personal_namespace)
        reading_note(ada, "namespace", ada.personal_namespace.pk, ada.personal_namespace)
        assert told("administrator.read") == []

    def test_a_namespace_that_is_looked_at_over_the_api_is_recorded(self, ada, admin, signed_in):
        home = ada.personal_namespace
        signed_in(admin).get(f"/api/v1/namespaces/{home.pk}/")
        assert [one.subject for one in told("administrator.read")] == [f"namespace:{home.pk}"]

    def test_downloads_are_counted_by_the_hour(self, ada):
        home = ada.personal_namespace
        with time_machine.travel(timezone.now().replace(minute=30), tick=False):
            for _ in range(4):
                download_record(ada, "dataset", home.pk, home, name="digits")
        assert [(one.count, one.facts["name"]) for one in told("dataset.download")] == [(4, "digits")]


class TestKeeping:
    def test_old_events_go_and_none_go_where_they_are_kept_for_ever(self, ada, settings):
        settings.YARDMASTER_AUDIT_KEPT = timedelta(days=10)
        with time_machine.travel(timezone.now() - timedelta(days=11)):
            record(ada, "job.stop", "job:old")
        record(ada, "job.stop", "job:new")
        settings.YARDMASTER_AUDIT_KEPT = timedelta(0)
        assert events_clean(timezone.now()) == 0
        settings.YARDMASTER_AUDIT_KEPT = timedelta(days=10)
        events_clean(timezone.now())
        assert [one.subject for one in told("job.stop")] == ["job:new"]


def _read(answer) -> str:
    return b"".join(answer.streaming_content).decode()


class TestExport:
    def test_it_is_a_file_that_no_spreadsheet_runs(self, ada, admin, signed_in):
        for name in ("=cmd|'/C calc'!A0", "@SUM(1)", "+1", "-1", "\t=1", 'a"b,c\nd'):
            record(ada, "job.stop", name, name=name)
        answer = signed_in(admin).get("/api/v1/audit/export/", {"action": "job.stop"})
        assert answer.headers["Content-Type"].startswith("text/csv")
        assert "attachment" in answer.headers["Content-Disposition"]
        rows = list(csv.DictReader(io.StringIO(_read(answer))))
        assert len(rows) == 6
        for row in rows:
            for value in row.values():
                assert not value.startswith(("=", "+", "-", "@", "\t", "\r"))
        assert {row["actor_name"] for row in rows} == {"ada"}

    def test_json_lines_hold_the_same(self, ada, admin, signed_in):
        record(ada, "job.stop", "job:1", name="=1")
        text = _read(signed_in(admin).get("/api/v1/audit/export/", {"as": "jsonl", "action": "job.stop"}))
        (row,) = [json.loads(line) for line in text.splitlines()]
        assert (row["actor_name"], row["subject"], row["facts"]) == ("ada", "job:1", {"name": "=1"})

    def test_it_is_bounded_and_whole(self, ada, admin, signed_in, settings, monkeypatch):
        monkeypatch.setattr("apps.administration.audit_selectors._AT_ONCE", 3)
        for n in range(8):
            record(ada, "job.stop", f"job:{n}")
        for most, expected in ((100, 8), (7, 7), (6, 6), (2, 2)):
            settings.YARDMASTER_AUDIT_EXPORT_ROWS = most
            text = _read(signed_in(admin).get("/api/v1/audit/export/", {"as": "jsonl", "action": "job.stop"}))
            subjects = [json.loads(line)["subject"] for line in text.splitlines()]
            assert subjects == [f"job:{n}" for n in range(7, 7 - expected, -1)]

    def test_nobody_exports_more_than_they_may_read(self, ada, bob, signed_in, with_token):
        record(ada, "job.stop", "job:1", namespace=ada.personal_namespace)
        record(None, "user.change", "user:1", email="b", email_before="a")
        path = "/api/v1/audit/export/"
        assert "job:1" not in _read(signed_in(bob).get(path))
        hers = _read(signed_in(ada).get(path, {"as": "jsonl"}))
        assert "job:1" in hers
        assert "user:1" not in hers
        assert with_token(ada, "jobs").get(path).status_code == 403
        refused = signed_in(ada).get(path, {"as": "xlsx"})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "as")


class TestPage:
    PAGE = "/audit/"

    def test_it_shows_and_filters(self, ada, bob, admin, client):
        record(ada, "job.stop", "job:1", namespace=ada.personal_namespace, name="<script>alert(1)</script>")
        record(bob, "job.create", "job:2", namespace=bob.personal_namespace, name="two")
        failed_sign_in("mallory")
        client.force_login(admin)
        page = client.get(self.PAGE).content.decode()
        assert "Job stopped" in page
        assert "<script>alert" not in page

        def rows(**query) -> list[str]:
            text = client.get(self.PAGE, query).content.decode()
            return re.findall(r'<span class="fw-bold">([^<]+)</span>', text)

        assert rows(action="job.stop") == ["Job stopped"]
        assert rows(person="BOB") == ["Job launched"]
        assert rows(person="mallory") == ["Sign-in failed"]
        assert rows(namespace="ada") == ["Job stopped"]
        assert rows(person="nobody") == []
        assert rows(since=(timezone.now() + timedelta(days=1)).date()) == []
        assert "Job stopped" in rows(since=timezone.now().date(), until=timezone.now().date())
        assert rows(since="soon") == []
        assert "No events match" in client.get(self.PAGE, {"person": "nobody"}).content.decode()

    def test_a_manager_sees_the_own_namespaces_and_their_export(self, ada, bob, client):
        record(ada, "job.stop", "job:1", namespace=ada.personal_namespace)
        client.force_login(bob)
        assert 'fw-bold">Job stopped' not in client.get(self.PAGE).content.decode()
        assert "job:1" not in _read(client.get("/audit/audit.jsonl"))
        client.force_login(ada)
        assert 'fw-bold">Job stopped' in client.get(self.PAGE).content.decode()
        assert "job:1" in _read(client.get("/audit/audit.csv"))

    def test_it_has_pages_and_asks_little(self, ada, client, django_assert_max_num_queries):
        for n in range(120):
            record(ada, "job.stop", f"job:{n}", namespace=ada.personal_namespace)
        client.force_login(ada)
        client.get(self.PAGE)
        with django_assert_max_num_queries(9):
            page = client.get(self.PAGE, {"action": "job.stop"}).content.decode()
        older = re.search(r'href="([^"]*cursor=[^"]*)"', page)
        assert older is not None
        assert "action=job.stop" in older[1]
        assert client.get(self.PAGE + older[1].replace("&amp;", "&")).content.decode().count("Job stopped</span>") == 50
