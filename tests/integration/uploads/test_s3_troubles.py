"""What becomes of an S3 server's troubles: one that answers 503, stalls, breaks off, is full, or refuses the keys."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from yardmaster.errors import Misconfigured, Unavailable
from yardmaster.storage import s3_client
from yardmaster.storage.base import Part, PartsRefused, StorageFull
from yardmaster.storage.registry import storage_from
from yardmaster.storage.s3 import S3Storage


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>in words</Message></Error>".encode()


@dataclass
class Troubled:
    """A server that gives the same answer to everything."""

    status: int = 503
    body: bytes = _error("SlowDown")
    length: int | None = None
    """What it says of its body; None: the truth."""
    stalls: threading.Event = field(default_factory=threading.Event)
    """Set: it answers at once."""
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def troubled() -> Troubled:
    found = Troubled()
    found.stalls.set()
    return found


@pytest.fixture
def patience() -> float:
    """Seconds that the store waits for an answer, longer than a slow machine lets it wait for one that comes."""
    return 20.0


@pytest.fixture
def store(troubled: Troubled, patience: float, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Storage]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            troubled.asked.append(self.command)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            troubled.stalls.wait(10)
            self.send_response(troubled.status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Last-Modified", "Mon, 23 Nov 2026 12:00:00 GMT")
            self.send_header("Content-Length", str(troubled.length or len(troubled.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(troubled.body)
            self.close_connection = True

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

        def log_message(self, *arguments: object) -> None:
            """Quiet."""

    monkeypatch.setattr(s3_client, "READ_SECONDS", patience)
    monkeypatch.setattr(s3_client, "PAUSE_SECONDS", 0.01)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield S3Storage(f"http://127.0.0.1:{server.server_port}", "bucket", "access", "secret")
    finally:
        troubled.stalls.set()
        server.shutdown()
        server.server_close()


CALLS = {
    "put": lambda store: store.put("k", b"data"),
    "stat": lambda store: store.stat("k"),
    "open": lambda store: store.open_range("k"),
    "copy": lambda store: store.copy("k", "l"),
    "delete": lambda store: store.delete("k"),
    "list": lambda store: list(store.list_prefix("p")),
    "delete_prefix": lambda store: store.delete_prefix("p"),
    "begin": lambda store: store.multipart_begin("k", 1),
    "parts": lambda store: store.parts("k", "id"),
    "complete": lambda store: store.multipart_complete("k", "id", [Part(1, 1, "e")]),
    "abort": lambda store: store.multipart_abort("k", "id"),
    "prepare": lambda store: store.prepare(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_is_too_busy_is_asked_again_and_is_then_unavailable(store, troubled, call):
    with pytest.raises(Unavailable) as caught:
        CALLS[call](store)
    assert caught.value.retryable
    if call not in ("begin", "complete"):  # a POST may have been carried out
        assert len(troubled.asked) > 1


@pytest.mark.parametrize("patience", [0.3])
def test_a_server_that_does_not_answer_is_unavailable(store, troubled):
    troubled.stalls.clear()
    with pytest.raises(Unavailable, match="did not answer"):
        store.stat("k")


def test_nobody_there_is_unavailable_and_neither_message_nor_log_has_a_signature(monkeypatch, caplog):
    caplog.set_level("DEBUG")
    monkeypatch.setattr(s3_client, "PAUSE_SECONDS", 0.01)
    store = S3Storage("http://127.0.0.1:1", "bucket", "access", "secret")
    for call in CALLS.values():
        with pytest.raises(Unavailable) as caught:
            call(store)
        assert "X-Amz" not in "".join(traceback.format_exception(caught.value))
    assert "uploadId=id" in caplog.text, "the libraries have written nothing"
    assert "X-Amz" not in caplog.text


def test_an_object_that_breaks_off_is_never_a_short_one(store, troubled):
    troubled.status, troubled.body, troubled.length = 200, b"half", 8
    with store.open_range("k") as body, pytest.raises(Unavailable, match="interrupted"):
        list(iter(lambda: body.read(2), b""))


def test_what_is_no_xml_is_unavailable(store, troubled):
    troubled.status, troubled.body = 200, b"<html>sign in"
    with pytest.raises(Unavailable):
        store.multipart_begin("k", 1)


@pytest.mark.parametrize(
    ("status", "code", "error", "words"),
    [
        (507, "XMinioStorageFull", StorageFull, "full"),
        (403, "QuotaExceeded", StorageFull, "full"),
        (403, "SignatureDoesNotMatch", Unavailable, "own access key"),
        (403, "AccessDenied", Unavailable, "own access key"),
        (404, "NoSuchBucket", Unavailable, "does not have the portal's bucket"),
        (400, "SomethingElse", Unavailable, "SomethingElse"),
    ],
)
def test_what_the_server_says_becomes_the_contracts_error(store, troubled, status, code, error, words):
    troubled.status, troubled.body = status, _error(code)
    for call in ("put", "begin", "complete"):
        with pytest.raises(error, match=words):
            CALLS[call](store)


def test_an_error_in_an_answer_of_200_is_one(store, troubled):
    troubled.status, troubled.body = 200, _error("InvalidPart")
    with pytest.raises(PartsRefused):
        store.multipart_complete("k", "id", [Part(1, 1, "e")])


OPTIONS = {"endpoint": "http://127.0.0.1:9000", "bucket": "b", "access_key": "a", "secret_key": "s"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"endpoint": "127.0.0.1:9000"}, "no address of an S3 server"),
        ({"endpoint": "http://127.0.0.1:9000/bucket"}, "no address of an S3 server"),
        ({"endpoint": "http://a:s@127.0.0.1:9000"}, "holds no credentials"),
        ({"public_endpoint": "store"}, "no address of an S3 server"),
        ({"access_key": ""}, "access key and a secret key"),
        ({"prefix": "../a"}, "not allowed"),
        ({"buckets": "b"}, "is no option of S3Storage"),
    ],
)
def test_a_mistake_in_the_setting_is_said_with_its_place(change, words):
    with pytest.raises(Misconfigured, match=words) as caught:
        storage_from({"class": "yardmaster.storage.s3.S3Storage", "options": OPTIONS | change})
    assert "YARDMASTER_STORAGE" in str(caught.value)
