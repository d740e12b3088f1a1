"""What the portal answers at the addresses its own store signs. What lies there came from strangers."""

from __future__ import annotations

import asyncio
import tracemalloc
from datetime import timedelta

import pytest
from django.test import Client

from apps.stores import storage
from portal.one_thread import OneThread

QUARTER = timedelta(minutes=15)
DATA = b"0123456789"


def _path(url: str) -> str:
    return url.partition(":8080")[2]


@pytest.fixture
def url(store) -> str:
    store.put("datasets/1/a.txt", DATA)
    return _path(store.read_url("datasets/1/a.txt", QUARTER, filename="a.txt", content_type="text/plain"))


def _body(answer) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def test_an_object_is_delivered_whole(url):
    answer = Client().get(url)
    assert (answer.status_code, _body(answer)) == (200, DATA)
    assert answer.headers["Content-Length"] == "10"
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["ETag"]


@pytest.mark.parametrize("name", ["evil.html", "evil.svg", "evil.xhtml", "evil.xml", "evil.js", "evil.pdf", "evil.mht"])
def test_hostile_content_never_runs_on_the_portals_origin(store, name):
    store.put(f"d/{name}", b"<script>alert(1)</script>")
    for claimed in ("text/html", "image/svg+xml", "application/javascript", ""):
        answer = Client().get(_path(store.read_url(f"d/{name}", QUARTER, filename=name, content_type=claimed)))
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_a_picture_keeps_its_type_so_that_pages_can_show_it(store):
    store.put("d/a.png", b"\x89PNG")
    answer = Client().get(_path(store.read_url("d/a.png", QUARTER, content_type="image/png")))
    assert answer.headers["Content-Type"] == "image/png"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "name",
    ['a"; filename="b.html', "a\r\nSet-Cookie: x=1", "näme 日本.txt", "\u202egnp.exe", "🙂", "x" * 10_000, "a;b,c\\d"],
)
def test_no_file_name_breaks_out_of_its_header(store, name):
    store.put("k", DATA)
    answer = Client().get(_path(store.read_url("k", QUARTER, filename=name)))
    assert answer.status_code == 200
    disposition = answer.headers["Content-Disposition"]
    assert disposition.startswith("attachment")
    assert "\r" not in disposition
    assert "\n" not in disposition
    assert disposition.isascii()
    assert "Set-Cookie" not in answer.headers
    assert disposition.count("filename") == 1 or name.startswith('a"')


@pytest.mark.parametrize(
    ("header", "status", "body", "content_range"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=" + ",".join(["0-9"] * 5000), 200, DATA, None),
        ("bytes=5-2", 200, DATA, None),
        ("nonsense", 200, DATA, None),
        ("bytes=" + "9" * 100 + "-", 200, DATA, None),
    ],
)
def test_ranges(url, header, status, body, content_range):
    answer = Client().get(url, headers={"Range": header})
    assert (answer.status_code, _body(answer)) == (status, body)
    assert answer.headers.get("Content-Range") == content_range


def test_a_range_of_an_object_that_changed_is_the_whole_new_one(url, store):
    etag = Client().get(url).headers["ETag"]
    held = Client().get(url, headers={"Range": "bytes=0-1", "If-Range": etag})
    assert held.status_code == 206
    _body(held)
    store.put("datasets/1/a.txt", b"another one")
    changed = Client().get(url, headers={"Range": "bytes=0-1", "If-Range": etag})
    assert (changed.status_code, _body(changed)) == (200, b"another one")


def test_what_a_client_has_already_is_not_sent_again(url):
    first = Client().get(url)
    _body(first)
    etag = first.headers["ETag"]
    for known in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        answer = Client().get(url, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content) == (304, b"")
    assert Client().get(url, headers={"If-None-Match": '"x"'}).status_code == 200


def test_head_tells_the_same_without_the_bytes(url):
    answer = Client().head(url)
    assert (answer.status_code, answer.content, answer.headers["Content-Length"]) == (200, b"", "10")


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_an_address_for_reading_does_nothing_else(url, method, store):
    assert getattr(Client(), method)(url).status_code in (403, 405)
    assert store.stat("datasets/1/a.txt").size == 10


@pytest.mark.parametrize(
    "change",
    [
        ("a.txt", "b.txt"),
        ("datasets/1", "datasets/2"),
        ("datasets/1", "datasets/1/../1"),
        ("text%2Fplain", "image%2Fpng"),
        ("expires=", "expires=9"),
        ("signature=", "signature=0"),
        ("signature", "other"),
        ("expires", "other"),
    ],
)
def test_a_changed_address_is_refused_as_a_problem(url, store, change):
    store.put("datasets/2/a.txt", b"foreign")
    answer = Client().get(url.replace(*change, 1))
    assert answer.status_code in (403, 404)
    assert b"foreign" not in _body(answer)
    assert "sandbox" in answer.headers.get("Content-Security-Policy", "sandbox")


def test_an_address_that_opens_the_disk_is_refused(store, tmp_path):
    (tmp_path / "secret").write_text("secret")
    for path in ("../../secret", "%2e%2e/%2e%2e/secret", "//etc/passwd", "/etc/passwd"):
        answer = Client().get(f"/storage/objects/{path}?expires=99999999999&signature={'0' * 64}")
        assert answer.status_code in (403, 404)


def test_an_expired_address_says_so(store, settings):
    from yardmaster.storage.local import LocalStorage

    options = settings.YARDMASTER_STORAGE["options"]
    past = LocalStorage(**options, clock=lambda: 1_000_000.0)
    past.put("k", DATA)
    answer = Client().get(_path(past.read_url("k", QUARTER)))
    assert (answer.status_code, answer.json()["code"]) == (403, "address_expired")
    assert answer.json()["remedy"]


def _asgi_get(url: str, on_piece) -> None:
    """GET by ASGI, as uvicorn does it, each piece handed on at once."""
    path, _, query = url.partition("?")
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": query.encode(), "headers": [(b"host", b"127.0.0.1")], "scheme": "http",
        "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip

    async def run() -> None:
        asked = False

        async def receive():
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        async def send(message):
            if message["type"] == "http.response.body":
                on_piece(message.get("body", b""))

        handler = OneThread()
        handler.load_middleware(is_async=True)
        await handler(scope, receive, send)

    asyncio.run(run())


def test_memory_stays_flat_under_asgi_whatever_the_size(store):
    class Zeros:
        left = 128 << 20

        def read(self, size=-1, /):
            data = bytes(min(size, self.left))
            self.left -= len(data)
            return data

    store.put("big", Zeros())
    url = _path(storage().read_url("big", QUARTER))
    got = 0

    def count(piece: bytes) -> None:
        nonlocal got
        got += len(piece)

    tracemalloc.start()
    try:
        _asgi_get(url, count)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert got == 128 << 20
    assert peak < 16 << 20
