"""The page of settings in force: each with its value and where it comes from, and never a secret."""

from __future__ import annotations

import html
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.administration.setting_values import NOT_SET, SET, is_secret, shown_value
from apps.administration.settings_table import described, risks
from tests.unit.portal.test_settings_page import OF_OTHERS, named_on_the_page

SECRET = "hunter2-is-it"
DIGITS = "836271946513879246581379"


@pytest.fixture
def desk(admin, client):
    client.force_login(admin)
    return client


def page(desk, query: str = "") -> str:
    answer = desk.get(f"/admin/settings/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_others_are_refused(ada, client, signed_in):
    client.force_login(ada)
    assert client.get("/admin/settings/").status_code == 403
    assert signed_in(ada).get("/api/v1/admin/settings/").status_code == 403


def test_every_setting_of_the_documentation_is_there(desk):
    names = [one.name for one in described()]
    assert set(names) == named_on_the_page() - OF_OTHERS
    assert len(names) == len(set(names))
    shown = page(desk)
    assert [name for name in names if f">{name}<" not in shown] == []


@pytest.mark.parametrize(
    "value",
    [
        SECRET,
        f"postgres://user:{SECRET}@db.example:5432/name",
        f"https://{SECRET}@host.example/path",
        f"https://host.example/{SECRET}?token={SECRET}#{SECRET}",
        f"redis://:{SECRET}/odd@host:6379/0",
        f'{{"token": "{SECRET}"}}',
        f"smtp://u:p/{SECRET}@host",
        f"a.example,https://u:{SECRET}@b.example",
        f"https://host:{SECRET}/",
        f"//u:{SECRET}@host",
    ],
)
def test_no_address_of_any_variable_shows_its_password(desk, signed_in, admin, monkeypatch, value):
    for one in described():
        # A text that is on the list is shown as it is: it is no secret, and no one puts one there.
        if not (value == SECRET and shown_value(one.name, value) == value):
            monkeypatch.setenv(one.name, value)
    assert SECRET not in page(desk)
    answer = signed_in(admin).get("/api/v1/admin/settings/")
    assert SECRET not in answer.content.decode()


def test_secrets_are_set_or_not_set_whatever_they_look_like(desk, signed_in, admin, monkeypatch, settings):
    secrets = [one.name for one in described() if is_secret(one.name)]
    assert secrets == [
        "YARDMASTER_SECRET_KEY", "YARDMASTER_EARLIER_SECRET_KEYS", "YARDMASTER_EMAIL_PASSWORD",
        "YARDMASTER_S3_ACCESS_KEY", "YARDMASTER_S3_SECRET_KEY",
    ]  # fmt: skip
    for name in secrets:
        monkeypatch.setenv(name, DIGITS)
    answer = signed_in(admin).get("/api/v1/admin/settings/")
    rows = {one["name"]: one for one in answer.json()["settings"]}
    assert {rows[name]["value"] for name in secrets} == {SET}
    assert DIGITS not in answer.content.decode()
    assert settings.SECRET_KEY not in page(desk)
    monkeypatch.delenv("YARDMASTER_SECRET_KEY")
    monkeypatch.setitem(settings.YARDMASTER_DEFAULTS, "YARDMASTER_EMAIL_PASSWORD", DIGITS)
    monkeypatch.delenv("YARDMASTER_EMAIL_PASSWORD")
    shown = page(desk)
    assert settings.SECRET_KEY not in shown
    assert DIGITS not in shown


def test_only_names_that_were_looked_at_show_texts():
    """A new variable shows numbers and switches, and no text until someone has put it on the list."""
    assert shown_value("YARDMASTER_SOMETHING_NEW", "a text") == SET
    assert shown_value("YARDMASTER_SOMETHING_NEW", "12") == "12"
    assert shown_value("YARDMASTER_SOMETHING_NEW", "8Gi") == "8Gi"
    assert shown_value("YARDMASTER_SOMETHING_NEW", "") == NOT_SET
    assert shown_value("YARDMASTER_DATABASE_URL", "postgres://u:p@db.example:5432/x") == "postgres://db.example:5432"
    assert shown_value("YARDMASTER_WORKBENCH_URL", "https://*.example.org") == "https://*.example.org"


def test_where_a_value_comes_from_is_said(signed_in, admin, monkeypatch):
    monkeypatch.setenv("YARDMASTER_QUEUED_JOBS", "77")
    monkeypatch.delenv("YARDMASTER_LOG_LEVEL", raising=False)
    rows = {one["name"]: one for one in signed_in(admin).get("/api/v1/admin/settings/").json()["settings"]}
    queued = rows["YARDMASTER_QUEUED_JOBS"]
    assert (queued["value"], queued["origin"], queued["default"]) == ("77", "environment", "1000")
    assert "queued at once" in queued["purpose"]
    assert (rows["YARDMASTER_LOG_LEVEL"]["value"], rows["YARDMASTER_LOG_LEVEL"]["origin"]) == ("INFO", "default")
    assert rows["YARDMASTER_DEFAULT_QUOTA_GPUS"]["value"] == "unlimited"


def test_it_is_searched_by_name_and_words(desk, monkeypatch):
    shown = page(desk, "?search=terminals")
    assert ">YARDMASTER_LONGEST_HOLD<" in shown
    assert ">YARDMASTER_QUEUED_JOBS<" not in shown
    assert "No setting matches" in page(desk, "?search=nothing-is-called-so")
    monkeypatch.setenv("YARDMASTER_QUEUED_JOBS", "77")
    names = re.findall(r">(YARDMASTER_[A-Z0-9_]+)<", page(desk, "?changed=yes").split("<form class")[-1])
    assert "YARDMASTER_QUEUED_JOBS" in names
    assert "YARDMASTER_LOG_KEEP" not in names


def test_what_is_risky_is_said(desk, settings):
    settings.PUBLIC_URL = "https://train.example.org"
    settings.YARDMASTER_SENDS_MAIL, settings.YARDMASTER_SIGN_UP = True, "invitation"
    settings.YARDMASTER_REQUIRE_SECOND_FACTOR, settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL = "all", False
    settings.YARDMASTER_WORKBENCH_SHARED_ORIGIN, settings.DEBUG = False, False
    settings.ALLOWED_HOSTS = ["train.example.org", "testserver"]
    assert risks() == []
    settings.PUBLIC_URL = "http://train.example.org"
    settings.YARDMASTER_SENDS_MAIL, settings.YARDMASTER_SIGN_UP = False, "open"
    settings.YARDMASTER_WORKBENCH_SHARED_ORIGIN = True
    settings.YARDMASTER_REQUIRE_SECOND_FACTOR = "none"
    names = [one.name for one in risks()]
    assert names == [
        "YARDMASTER_PUBLIC_URL", "YARDMASTER_WORKBENCH_SHARED_ORIGIN", "YARDMASTER_SIGN_UP", "YARDMASTER_EMAIL_URL",
        "YARDMASTER_REQUIRE_SECOND_FACTOR",
    ]  # fmt: skip
    assert "no address is confirmed" in html.unescape(page(desk))
    settings.DEBUG = True
    assert risks()[0].name == "YARDMASTER_DEBUG"


def test_the_page_costs_few_queries(desk):
    page(desk)
    with CaptureQueriesContext(connection) as seen:
        page(desk)
    assert len(seen) <= 8


def test_two_settings_of_one_row_have_each_their_own_default():
    found = {one.name: one.without for one in described()}
    assert (found["YARDMASTER_HOST"], found["YARDMASTER_PORT"]) == ("127.0.0.1", "8080")
    assert found["YARDMASTER_ALLOWED_HOSTS"].startswith("127.0.0.1,localhost"), "one setting keeps its commas"
