"""What a stranger without any credential can make the portal do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from rest_framework.test import APIClient

from apps.api import views
from apps.stores import storage
from portal.body_limit import FORM, BodyLimit, limit_of


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["ymt.{}.1.é", "ymt.{}.1.\xff", "é.{}.1.a", "ymt.{}.１.a", "ymt.{}.-1.a"])
def test_a_task_token_of_any_characters_is_refused_and_no_error(token):
    client = APIClient(raise_request_exception=False)
    header = f"Bearer {token.format('0' * 32)}".encode().decode("latin-1")
    for path in ("/api/v1/task/order/?role=worker&index=0", "/api/v1/task/log/?role=worker&index=0"):
        answer = client.get(path, HTTP_AUTHORIZATION=header)
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")


async def test_a_part_without_a_signature_reaches_no_disk():
    """Django writes a body to a file before any view sees who sends it: half a gigabyte each, from anybody."""

    async def untouched(scope, receive, send):
        raise AssertionError("the request got through")

    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "PUT",
        "path": f"/storage/parts/{'0' * 32}/1",
        "query_string": b"key=a&size=1073741824&expires=9999999999&signature=00",
        "headers": [(b"content-length", str(1 << 30).encode())],
    }
    await BodyLimit(untouched)(scope, None, send)
    assert sent[0]["status"] == 413


def test_who_is_not_known_yet_sends_no_more_than_a_form():
    for path in ("/api/v1/auth/token/", "/accounts/login/", "/sign-in/x/", "/storage/objects/a", "/storage/parts/x/y"):
        assert limit_of(path) == FORM
    assert limit_of("/api/v1/uploads/") > FORM


def test_an_expired_signature_is_none():
    address = storage().part_url("a", "0" * 32, 1, size=1 << 20, sha256="0" * 64, expires=timedelta(minutes=1)).url
    path, _, query = address.partition(":8080")[2].partition("?")
    late = query.replace("expires=", "expires=1&x=")
    assert limit_of(path, query.encode()) == 1 << 20
    assert limit_of(path, late.encode()) == FORM


def test_the_schema_is_made_once_however_often_strangers_ask(monkeypatch):
    first = Client().get("/api/v1/schema/").content
    monkeypatch.setattr(views.SchemaView, "generator_class", None)
    assert Client().get("/api/v1/schema/?version=2&lang=de", HTTP_ACCEPT="application/json").content == first


@pytest.mark.django_db
def test_spaces_around_a_name_give_no_further_guesses(ada):
    answers = [
        Client().post(
            "/api/v1/auth/token/",
            {"username": f"{' ' * n}ada", "password": "wrong", "name": "x"},
            content_type="application/json",
        )
        for n in range(12)
    ]
    assert [answer.status_code for answer in answers][-1] == 429


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/accounts/login/", "/api/v1/me/", "/nowhere", "/healthz", "/api/v1/schema/"])
def test_every_answer_says_what_browsers_may_do_with_it(path):
    headers = Client().get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert {"camera=()", "microphone=()", "geolocation=()"} <= set(headers["Permissions-Policy"].split(", "))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"]
)
def test_signing_in_leads_to_no_other_site(ada, target):
    form = {"login": "ada", "password": "correct horse battery", "next": target}
    answer = Client().post("/accounts/login/", form)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
