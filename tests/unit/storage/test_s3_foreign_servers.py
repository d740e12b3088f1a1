"""What a server that others have named may answer: few bytes, in time, and what no S3 server says is an error of it."""

from __future__ import annotations

import io
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from yardmaster.errors import Unavailable
from yardmaster.storage import s3_guard
from yardmaster.storage.s3 import S3Storage
from yardmaster.storage.s3_client import status_of

Respond = Callable[[BaseHTTPRequestHandler], None]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Scripted:
    """A server on loopback; `respond` writes each answer."""

    def __init__(self) -> None:
        self.respond: Respond = lambda _: None
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                outer.respond(self)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def store(self) -> S3Storage:
        url = f"http://127.0.0.1:{self.server.server_address[1]}"
        return S3Storage(url, "bucket", "key", "secret", is_foreign=True, clock=lambda: NOW)


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    made = Scripted()
    yield made
    made.server.shutdown()
    made.server.server_close()


def answers(status: int, body: bytes = b"", **headers: str) -> Respond:
    def respond(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return respond


def listing(*objects: str, more: bool = False) -> bytes:
    is_cut = f"<IsTruncated>{str(more).lower()}</IsTruncated>"
    return f"<ListBucketResult>{is_cut}{''.join(objects)}</ListBucketResult>".encode()


def an_object(key: str = "a", size: object = 1, etag: str = "e", modified: str = "2026-01-01T00:00:00.000Z") -> str:
    return (
        f"<Contents><Key>{key}</Key><Size>{size}</Size><ETag>{etag}</ETag><LastModified>{modified}</LastModified>"
        "</Contents>"
    )


def endless(start: bytes, piece: bytes) -> Respond:
    def respond(request: BaseHTTPRequestHandler) -> None:
        try:
            request.wfile.write(start)
            while True:
                request.wfile.write(piece)
        except OSError:
            request.close_connection = True

    return respond


def test_objects_are_listed_page_by_page_with_encoded_keys(scripted: Scripted):
    pages = iter([listing(an_object("a"), an_object("b/"), more=True), listing(an_object("c", 7))])
    scripted.respond = lambda request: answers(200, next(pages))(request)
    assert [(one.key, one.size) for one in scripted.store().everything()] == [("a", 1), ("b/", 1), ("c", 7)]
    assert "start-after=b%2F" in scripted.asked[1]
    encoded = listing("<EncodingType>url</EncodingType>", an_object("x%2By+z"))
    scripted.respond = answers(200, encoded)
    assert [one.key for one in scripted.store().everything()] == ["x+y z"]


def test_an_answer_that_does_not_end_is_given_up(scripted: Scripted, monkeypatch):
    monkeypatch.setattr(s3_guard, "MOST_ANSWER", 1 << 20)
    head = b"HTTP/1.1 %d OK\r\nContent-Type: application/xml\r\n\r\n"
    for status in (200, 403, 503):
        scripted.respond = endless(head % status, b"<" * 65536)
        with pytest.raises(Unavailable, match="more than 1048576 bytes"):
            list(scripted.store().everything())
        if status != 200:
            with pytest.raises(Unavailable, match="more than 1048576 bytes"):
                scripted.store().open_range("a")


def test_a_head_that_does_not_end_is_given_up(scripted: Scripted):
    scripted.respond = endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
    with pytest.raises(Unavailable, match="did not answer"):
        list(scripted.store().everything())


def test_the_time_that_a_server_names_is_not_waited_for(scripted: Scripted, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"waits for {seconds} s"))
    scripted.respond = answers(503, Retry_After="21600")
    with pytest.raises(Unavailable) as refused:
        list(scripted.store().everything())
    assert status_of(refused.value) == 503
    assert len(scripted.asked) == 1


class Dripping(io.RawIOBase):
    """A byte at a time, each after so many seconds."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        self._clock, self._seconds = clock, seconds

    def readinto(self, buffer, /) -> int:
        self._clock[0] += self._seconds
        buffer[:1] = b"x"
        return 1


def test_a_server_that_sends_a_byte_now_and_then_is_given_up_and_a_slow_reader_is_not(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(s3_guard.time, "monotonic", lambda: clock[0])
    slow = s3_guard._Paced(Dripping(clock, 9.0))
    assert [slow.read(1) for _ in range(3)] == [b"x"] * 3
    with pytest.raises(TimeoutError):
        slow.read(1)
    quick = s3_guard._Paced(Dripping(clock, 0.0))
    for _ in range(20):
        clock[0] += 9.0
        assert quick.read(1) == b"x"


@pytest.mark.parametrize(
    "body",
    [
        listing(more=True),
        listing(an_object(size="many")),
        listing(an_object(size=10**30)),
        listing(an_object(size=-1)),
        listing(an_object(key="k" * 1025)),
        listing(an_object(etag="e" * 201)),
        listing("<EncodingType>url</EncodingType>", an_object("a%00b")),
        listing(an_object(modified="yesterday")),
        b"no xml",
    ],
)
def test_what_no_server_of_objects_lists_is_an_error_of_the_server(scripted: Scripted, body: bytes):
    scripted.respond = answers(200, body)
    with pytest.raises(Unavailable):
        list(scripted.store().everything())


def test_what_a_server_says_of_an_error_is_kept_as_far_as_it_is_short(scripted: Scripted):
    said = f"<Error><Code>{'c' * 9_000}</Code><Message>{'m' * 90_000}</Message></Error>".encode()
    scripted.respond = answers(400, said, Content_Type="application/xml")
    for ask in (lambda: list(scripted.store().everything()), lambda: scripted.store().open_range("a")):
        with pytest.raises(Unavailable) as refused:
            ask()
        assert len(refused.value.message) < 1_000


def test_a_checksum_that_is_none_is_an_error_of_the_server(scripted: Scripted):
    modified = "Thu, 01 Jan 2026 00:00:00 GMT"
    scripted.respond = answers(200, ETag='"e"', Last_Modified=modified, x_amz_checksum_sha256="é?")
    with pytest.raises(Unavailable, match="not as S3 defines it"):
        scripted.store().stat("a")


def test_no_traceback_of_a_call_has_its_signature():
    store = S3Storage("http://127.0.0.1:9", "bucket", "key", "secret", is_foreign=True)
    with pytest.raises(Unavailable) as refused:
        store.multipart_begin("a", 8 << 20)
    assert "X-Amz" not in "".join(traceback.format_exception(refused.value))
