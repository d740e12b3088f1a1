"""What every address under /api/ does with requests that it does not like."""

from __future__ import annotations

import json

import pytest
from django.db import OperationalError
from django.test import Client
from rest_framework.test import APIClient

from apps.accounts import selectors
from apps.api.problems import CONTENT_TYPE

pytestmark = pytest.mark.django_db
KEYS = {"type", "title", "status", "code", "detail", "remedy", "errors"}


def problem(response, status, code):
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == CONTENT_TYPE
    body = json.loads(response.content)
    assert set(body) == KEYS
    assert (body["status"], body["code"]) == (status, code)
    return body


@pytest.mark.parametrize("path", ["/api/", "/api/v1/nothing/", "/api/v2/jobs/", "/api/v1/tokens/not-an-id/"])
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_an_unknown_address_is_a_problem(path, method):
    problem(getattr(APIClient(), method)(path), 404, "not_found")


def test_a_forgotten_slash_is_named():
    assert "/api/v1/tokens/" in problem(APIClient().get("/api/v1/tokens"), 404, "not_found")["remedy"]


def test_a_stranger_is_told_how_to_sign_in():
    response = APIClient().get("/api/v1/tokens/")
    assert "Bearer" in problem(response, 401, "not_authenticated")["remedy"]
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer a b", "Bearer " + "x" * 5000, "Bearer nosuchtoken", b"Bearer \xff\xfe", "bearer ym_"]
)
def test_a_broken_token_is_401_and_no_error(header):
    response = APIClient().get("/api/v1/tokens/", HTTP_AUTHORIZATION=header)
    problem(response, 401, "not_authenticated")


def test_a_wrong_method_says_which_are_allowed(ada, signed_in):
    response = signed_in(ada).put("/api/v1/tokens/", {})
    problem(response, 405, "method_not_allowed")
    assert "POST" in response.headers["Allow"]


def test_another_media_type_is_415(ada, signed_in):
    response = signed_in(ada).post("/api/v1/tokens/", "a=b", content_type="text/csv")
    problem(response, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "",
        "\xff".encode("latin-1"),
        '{"name": NaN}',
        "[" * 100_000,
        '{"a":' * 100 + "1" + "}" * 100,
        '{"name": ' + "9" * 5000 + "}",
    ],
)
def test_malformed_json_is_400(ada, signed_in, body):
    response = signed_in(ada).post("/api/v1/tokens/", body, content_type="application/json")
    assert response.status_code == 400
    assert json.loads(response.content)["code"] in {"malformed", "invalid"}


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_text_that_no_database_holds_is_refused_by_field(ada, signed_in, text):
    body = json.dumps({"name": text})
    response = signed_in(ada).post("/api/v1/tokens/", body, content_type="application/json")
    assert problem(response, 400, "invalid")["errors"][0]["field"] == "name"


@pytest.mark.parametrize("body", ["[]", '"x"', "1", "null", "[[1]]"])
def test_json_that_is_no_object_is_invalid(ada, signed_in, body):
    response = signed_in(ada).post("/api/v1/tokens/", body, content_type="application/json")
    problem(response, 400, "invalid")


def test_an_unknown_key_is_refused_by_name(ada, signed_in):
    body = problem(signed_in(ada).post("/api/v1/tokens/", {"name": "a", "expries_in": 1}), 400, "invalid")
    assert body["errors"][0]["field"] == "expries_in"
    assert "expires_in" in body["errors"][0]["message"]


def test_a_large_body_is_413(ada, signed_in, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    response = signed_in(ada).post("/api/v1/tokens/", {"name": "x" * 2000})
    problem(response, 413, "too_large")
    response = signed_in(ada).post("/api/v1/tokens/", {"name": "x" * 2000}, headers={"Idempotency-Key": "k"})
    problem(response, 413, "too_large")


def test_a_nul_in_the_address_is_refused(ada, signed_in):
    problem(signed_in(ada).get("/api/v1/audit/?subject=%00"), 400, "malformed")
    problem(signed_in(ada).get("/api/v1/%00/"), 400, "malformed")


def test_a_session_without_its_csrf_token_is_refused(ada):
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(ada)
    problem(client.post("/api/v1/tokens/", {"name": "x"}), 403, "csrf_failed")


def test_a_token_needs_no_csrf(ada, with_token):
    client = with_token(ada)
    client.handler.enforce_csrf_checks = True
    assert client.post("/api/v1/tokens/", {"name": "x"}).status_code == 201


def test_a_bug_is_a_problem_without_details_and_a_traceback_in_the_log(ada, monkeypatch, caplog):
    monkeypatch.setattr(selectors, "tokens_of", lambda user: 1 / 0)
    client = Client(raise_request_exception=False)
    client.force_login(ada)
    response = client.get("/api/v1/tokens/")
    assert "division" not in response.content.decode()
    problem(response, 500, "error")
    assert any("ZeroDivisionError" in (record.exc_text or "") for record in caplog.records)


def test_a_database_that_is_away_is_503(ada, signed_in, monkeypatch):
    def gone(user):
        raise OperationalError("connection refused")

    monkeypatch.setattr(selectors, "tokens_of", gone)
    response = signed_in(ada).get("/api/v1/tokens/")
    assert "refused" not in problem(response, 503, "unavailable")["detail"]
    assert response.headers["Retry-After"] == "5"


def test_a_page_that_is_not_there_is_a_page(ada, signed_in):
    response = signed_in(ada).get("/nothing/")
    assert response.status_code == 404
    assert response.headers["Content-Type"].startswith("text/html")


def test_pages_may_send_to_the_object_store_and_nowhere_else(settings):
    assert "connect-src 'self';" in Client().get("/accounts/login/").headers["Content-Security-Policy"]
    keys = {"bucket": "b", "access_key": "a", "secret_key": "s", "public_endpoint": "https://store.test"}
    settings.YARDMASTER_STORAGE = {
        "class": "yardmaster.storage.s3.S3Storage",
        "options": {"endpoint": "http://10.0.0.1:9000"} | keys,
    }
    policy = Client().get("/accounts/login/").headers["Content-Security-Policy"]
    assert "connect-src 'self' https://store.test;" in policy
    assert "img-src 'self' data: https://store.test;" in policy
    assert "10.0.0.1" not in policy
    assert "script-src 'self';" in policy


def test_every_answer_forbids_foreign_content():
    for path in ("/api/v1/schema/", "/accounts/login/", "/api/v1/nothing/"):
        policy = Client().get(path).headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
