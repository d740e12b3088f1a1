"""Requests of the API by no one are refused before Django sees them: the same answer, at less cost, and only
where Django would give it."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import User
from apps.accounts.services import token_create
from portal import callers, credential_memory
from portal.callers import Caller, Doubt, caller_of
from portal.early_refusals import needs_a_user, refusal_of
from portal.rate_limit import RateLimit
from portal.refused_at_once import refused_at_once
from tests.integration.security.matrix import routes, table_read
from tests.integration.security.populated import Populated

ME = "/api/v1/me/"
UNKNOWN = f"ym_{'0' * 64}"


@pytest.fixture(autouse=True)
def _nothing_is_remembered(monkeypatch):
    for memory in (callers._GOOD, callers._UNKNOWN, callers._ONCE_GOOD):
        memory.clear()
    # In the thread that has the test's transaction.
    monkeypatch.setattr(callers, "database_sync_to_async", lambda ask, **_: sync_to_async(ask))


def scope_of(path: str = ME, *headers: tuple[bytes, bytes], address: str = "192.0.2.1") -> dict[str, Any]:
    return {"type": "http", "method": "GET", "path": path, "headers": list(headers), "client": (address, 1)}


def bearer(token: str) -> tuple[bytes, bytes]:
    return (b"authorization", f"Bearer {token}".encode())


def found(*headers: tuple[bytes, bytes], address: str = "192.0.2.1", path: str = ME) -> Caller:
    return async_to_sync(caller_of)(scope_of(path, *headers, address=address))


@pytest.mark.django_db
def test_every_address_that_is_refused_early_asks_for_someone_and_most_are(admin):
    kept, populated = table_read(), Populated(admin)
    early = {str(one) for one in routes() if one.is_api and needs_a_user(populated.address(one))}
    assert {kept[name]["anonymous"] for name in early} <= {"L", "-"}
    assert len(early) > 250


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("header", "doubt"),
    [
        ((), Doubt.NOTHING),
        ((b"authorization", b"Basic x"), Doubt.NOTHING),
        ((b"authorization", b"Bearer"), Doubt.MALFORMED),
        ((b"authorization", b"Bearer a b"), Doubt.MALFORMED),
        ((b"authorization", b"Bearer " + b"x" * 5000), Doubt.MALFORMED),
        (bearer("nosuchtoken"), Doubt.UNKNOWN),
        (bearer(UNKNOWN), Doubt.UNKNOWN),
    ],
)
def test_the_answer_is_the_one_that_django_gives(header, doubt):
    headers = [header] if header else []
    assert found(*headers).doubt is doubt
    sent = async_to_sync(answered)(scope_of(ME, *headers))
    said = {name.decode().title(): value.decode() for name, value in headers}
    django = Client().get(ME, headers=said)
    assert (sent[0]["status"], json.loads(sent[1]["body"])) == (django.status_code, django.json())
    given = dict(sent[0]["headers"])
    assert given[b"www-authenticate"].decode() == django.headers["WWW-Authenticate"]
    assert given[b"content-type"].decode() == django.headers["Content-Type"]
    assert b"ratelimit-limit" in given


async def answered(scope: dict[str, Any]) -> list[Any]:
    """What the middleware sends by itself. What reaches the application is an error of the test."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def inner(*_: Any) -> None:
        raise AssertionError("Django was asked")

    await RateLimit(inner)(scope, None, send)
    return sent


@pytest.mark.django_db
def test_a_malformed_token_costs_no_query_and_an_unknown_one_only_the_first_time(django_assert_num_queries):
    with django_assert_num_queries(0):
        for token in ("x", "ym_", f"ym_{'0' * 63}", f"ym_{'0' * 63}g", f"ymt_{'0' * 64}", "\x7f"):
            assert not found(bearer(token)).is_known
    with django_assert_num_queries(1):
        for _ in range(20):
            assert found(bearer(UNKNOWN)).doubt is Doubt.UNKNOWN


@pytest.mark.django_db
def test_a_flood_of_unknown_tokens_from_one_address_is_not_looked_up_and_costs_its_neighbours_nothing(ada, settings):
    from django.db import connection

    settings.YARDMASTER_RATES = {**settings.YARDMASTER_RATES, "STRANGER": 5}
    _, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
    assert found(bearer(secret)).is_known
    with CaptureQueriesContext(connection) as asked:
        doubts = [found(bearer(f"ym_{number:064x}")).doubt for number in range(30)]
    assert doubts == [Doubt.UNKNOWN] * 5 + [Doubt.TOO_MANY] * 25
    assert len(asked) == 5
    callers._GOOD.clear()
    assert found(bearer(secret)).is_known, "one that was good is looked up whatever else its address sends"
    assert found(bearer(f"ym_{1:063x}f"), address="192.0.2.2").doubt is Doubt.UNKNOWN
    browser = Client()
    browser.force_login(ada)
    [cookie] = [one.value for name, one in browser.cookies.items() if name.endswith("session")]
    assert found((b"cookie", f"yardmaster_session={cookie}".encode())).is_known, "who has just signed in beside it"
    forged = [found(bearer(f"ymt.{number:032x}.1.x"), path="/api/v1/task/").doubt for number in range(8)]
    assert forged == [Doubt.UNKNOWN] * 8, "tasks are not held to it, and forging their tokens costs no question"
    assert async_to_sync(answered)(scope_of(ME, bearer(f"ym_{'e' * 64}")))[0]["status"] == 429


@pytest.mark.django_db
def test_a_revoked_token_is_refused_at_once_although_it_is_remembered(ada: User):
    token, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
    assert found(bearer(secret)).is_known
    token.delete()
    assert found(bearer(secret)).is_known, "for limits it is"
    assert Client().get(ME, headers={"Authorization": f"Bearer {secret}"}).status_code == 401


@pytest.mark.django_db
def test_the_token_of_a_locked_user_is_looked_up_again_sooner_than_one_that_never_was(ada: User, monkeypatch):
    _, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    now = time.monotonic()
    assert [found(bearer(one)).doubt for one in (secret, UNKNOWN)] == [Doubt.UNKNOWN] * 2
    User.objects.filter(pk=ada.pk).update(is_active=True)
    assert found(bearer(secret)).doubt is Doubt.UNKNOWN
    later = now + credential_memory.LOCKED_FOR + 1
    monkeypatch.setattr(credential_memory, "time", SimpleNamespace(monotonic=lambda: later))
    assert found(bearer(secret)).is_known
    assert callers._UNKNOWN.get(callers._key_of(("bearer", UNKNOWN))) is Doubt.UNKNOWN


def test_where_the_database_did_not_answer_or_a_session_comes_along_django_decides():
    for caller in (Caller("stranger", "x", Doubt.UNASKED), Caller("user", "ada"), Caller("task", "job")):
        assert refusal_of("http", ME, caller) is None
    stranger = Caller("stranger", "x", Doubt.NOTHING)
    for kind, path in (("websocket", "/ws/jobs/"), ("http", "/jobs/"), ("http", "/api/v1/nothing/"), ("http", "/api/")):
        assert refusal_of(kind, path, stranger) is None
    assert refusal_of("http", ME, stranger) is not None


@pytest.mark.django_db
def test_an_unknown_session_is_left_to_django():
    assert found((b"cookie", f"yardmaster_session={'a' * 32}".encode())).doubt is Doubt.UNASKED


DEFAULTS = [(b"date", b"Sat, 28 Nov 2026 12:00:00 GMT"), (b"server", b"uvicorn")]


def written(target: str = ME, *headers: tuple[bytes, bytes], method: str = "GET") -> bytes | None:
    """What the server answers without the application."""
    return refused_at_once(scope_of(ME, *headers) | {"method": method}, target.encode(), DEFAULTS)


@pytest.mark.django_db
@pytest.mark.parametrize("header", [(), (b"authorization", b"Bearer a b"), bearer("nosuchtoken"), bearer(UNKNOWN)])
def test_the_server_writes_the_same_answer_itself_once_it_knows(header):
    headers = [header] if header else []
    assert (written(ME, *headers) is None) == (header == bearer(UNKNOWN)), "what may be good is asked about first"
    start, body = async_to_sync(answered)(scope_of(ME, *headers))
    head, _, content = (written(f"{ME}?page=2", *headers) or b"").partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    assert first == f"HTTP/1.1 {start['status']} Unauthorized".encode()
    assert content == body["body"]
    sent, given = dict(line.split(b": ", 1) for line in lines), dict(start["headers"])
    changing = {b"ratelimit", b"ratelimit-remaining", b"ratelimit-reset"}
    assert sent.keys() == given.keys() | dict(DEFAULTS).keys()
    assert {name: sent[name] for name in given if name not in changing} == {
        name: value for name, value in given.items() if name not in changing
    }
    assert int(sent[b"ratelimit-remaining"]) < int(given[b"ratelimit-remaining"]), "it counts the same"


@pytest.mark.django_db
def test_the_server_leaves_to_the_application_whatever_is_not_plain(ada):
    _, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
    session = (b"cookie", f"yardmaster_session={'a' * 32}".encode())
    assert written(ME, bearer(secret)) is None
    assert found(bearer(secret)).is_known
    assert written(ME, bearer(secret)) is None, "known, and let in"
    assert found(session).doubt is Doubt.UNASKED
    for headers in ([session], [(b"content-length", b"3")], [(b"transfer-encoding", b"chunked")],
                    [(b"hx-request", b"true")], [(b"expect", b"100-continue")]):  # fmt: skip
        assert written(ME, *headers) is None, headers
    for target in ("/", "/jobs/", "/api/v1/m%65/", "/api/v1/nothing/", "/healthz", "/ws/jobs/"):
        assert written(target) is None, target
    assert written(ME, method="HEAD") is None
    assert written(ME, method="DELETE") is not None


@pytest.mark.django_db
def test_the_server_tells_one_who_asks_too_often_to_wait(settings):
    settings.YARDMASTER_RATES = {**settings.YARDMASTER_RATES, "STRANGER": 3}
    address = {**scope_of(ME), "client": ("192.0.2.77", 1)}
    firsts = [(refused_at_once(address, ME.encode(), []) or b"")[:12] for _ in range(5)]
    assert firsts == 3 * [b"HTTP/1.1 401"] + 2 * [b"HTTP/1.1 429"]
    assert b"\r\nretry-after: " in (refused_at_once(address, ME.encode(), []) or b"")
    settings.YARDMASTER_RATES = {**settings.YARDMASTER_RATES, "STRANGER": 1}
    for number in range(2):
        assert found(bearer(f"ym_{number:064x}"), address="192.0.2.78").doubt in (Doubt.UNKNOWN, Doubt.TOO_MANY)
    flood = scope_of(ME, bearer(f"ym_{9:064x}"), address="192.0.2.78")
    assert (refused_at_once(flood, ME.encode(), []) or b"")[:12] == b"HTTP/1.1 429"
