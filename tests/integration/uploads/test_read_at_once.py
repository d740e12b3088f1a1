"""The short way gives the view's answer, and the plain case does not reach Django."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.test import override_settings
from django.urls import reverse

from apps.stores import storage
from apps.uploads import read_at_once
from apps.uploads.read_at_once import ReadAtOnce

pytestmark = pytest.mark.django_db(transaction=True)

QUARTER = timedelta(minutes=15)
DATA = b"0123456789"
NAMES = ["a.txt", "näme 日本 %41+.txt", 'a"; b.html', "a\r\nSet-Cookie: x=1", "\u202egnp.exe"]

Answer = tuple[int, dict[str, str], bytes]


async def ask(application: Any, url: str, method: str = "GET", **headers: str) -> Answer:
    path, _, query = url.partition(":8080")[2].partition("?")
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "method": method, "path": unquote(path), "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1"), *sent],
    }  # fmt: skip
    client = ApplicationCommunicator(application, scope)
    await client.send_input({"type": "http.request", "body": b""})
    start, body, more = await client.receive_output(10), b"", True
    while more:
        message = await client.receive_output(10)
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await client.wait(10)
    return start["status"], {name.decode().title(): value.decode() for name, value in start["headers"]}, body


async def no_django(*_: object) -> None:
    raise AssertionError("the plain case has reached Django")


def test_the_address_is_the_view_s():
    assert reverse("storage_object", args=["k"]) == f"{read_at_once.PATH}k"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["", "text/plain", "text/html"])
async def test_the_plain_case_is_answered_as_the_view_answers_it(store, name, kind):
    store.put("datasets/1/ä b%20.bin", DATA)
    url = store.read_url("datasets/1/ä b%20.bin", QUARTER, filename=name, content_type=kind)
    status, headers, body = await ask(ReadAtOnce(no_django), url)
    by_the_view = await ask(get_asgi_application(), url)
    assert (status, body) == (by_the_view[0], by_the_view[2]) == (200, DATA)
    assert headers.items() <= by_the_view[1].items()
    others = {"X-Frame-Options", "Cross-Origin-Opener-Policy", "Permissions-Policy", "X-Request-Id", "X-Correlation-Id",
              "Vary", "Content-Language"}  # fmt: skip
    assert by_the_view[1].keys() - headers.keys() <= others


async def test_an_empty_object_and_one_of_the_largest_size_are_plain(store):
    for size in (0, read_at_once.LARGEST):
        store.put("k", b"x" * size)
        status, headers, body = await ask(ReadAtOnce(no_django), store.read_url("k", QUARTER))
        assert (status, headers["Content-Length"], len(body)) == (200, str(size), size)


@pytest.mark.parametrize(
    ("change", "method", "headers", "status"),
    [
        ("", "GET", {"range": "bytes=2-4"}, 206),
        ("", "HEAD", {}, 200),
        ("", "POST", {}, 403),
        ("", "GET", {"if_none_match": "*"}, 304),
        ("x", "GET", {}, 403),
    ],
)
async def test_what_is_not_plain_is_the_view_s(store, change, method, headers, status):
    store.put("k", DATA)
    application = ReadAtOnce(get_asgi_application())
    assert (await ask(application, store.read_url("k", QUARTER) + change, method, **headers))[0] == status


async def test_an_address_of_an_object_that_is_gone_or_large_or_that_has_expired_is_the_view_s(store, monkeypatch):
    application = ReadAtOnce(get_asgi_application())
    assert (await ask(application, store.read_url("none", QUARTER)))[0] == 404
    store.put("k", DATA)
    url = store.read_url("k", QUARTER)
    monkeypatch.setattr(read_at_once, "LARGEST", 9)
    assert (await ask(application, url))[2] == DATA
    with pytest.raises(AssertionError, match="reached Django"):
        await ask(ReadAtOnce(no_django), url)
    addresses = store.served().addresses
    monkeypatch.setattr(addresses, "_clock", lambda: 4e9)
    assert (await ask(application, url))[0] == 403


async def test_a_store_with_a_server_of_its_own_has_no_such_address(store):
    url = store.read_url("k", QUARTER)
    s3 = {"endpoint": "http://127.0.0.1:9", "bucket": "tests", "access_key": "a", "secret_key": "b"}
    with override_settings(YARDMASTER_STORAGE={"class": "yardmaster.storage.s3.S3Storage", "options": s3}):
        assert storage().served() is None
        assert (await ask(ReadAtOnce(get_asgi_application()), url))[0] == 404
