"""A body that is too large reaches no disk and no view."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from apps.hosting.dialing import MOST_BODY
from apps.stores import storage
from apps.uploads.manifest import FILE_LIST_BYTES
from portal.asgi import http
from portal.body_limit import FORM, BodyLimit, limit_of

# Fixed: every process of a parallel run must collect the same names.
UPLOAD = "01900000-0000-7000-8000-000000000000"


class Wire:
    """One request's ASGI channel: chunks in, messages out."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = list(chunks)
        self.sent: list[dict] = []

    async def receive(self):
        if not self.chunks:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self.chunks.pop(0), "more_body": bool(self.chunks)}

    async def send(self, message):
        self.sent.append(message)

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def problem(self) -> dict:
        return json.loads(self.sent[1]["body"])


def scope(path="/api/v1/auth/token/", **headers):
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    pairs += [(b"host", b"localhost"), (b"content-type", b"application/json")]
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": pairs,
    }


@pytest.fixture(autouse=True)
def _small(settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000


async def untouched(scope, receive, send):
    raise AssertionError("the request got through")


@pytest.mark.parametrize("length", ["1001", "9" * 19])
async def test_a_declared_length_is_refused_before_a_byte_is_read(length):
    wire = Wire(b"x")
    await BodyLimit(untouched)(scope(content_length=length), wire.receive, wire.send)
    assert (wire.status, wire.problem["code"]) == (413, "too_large")
    assert wire.chunks == [b"x"]


async def test_a_body_without_a_length_is_cut_off_and_refused():
    wire = Wire(*[b"x" * 400] * 10)
    await BodyLimit(http)(scope(transfer_encoding="chunked"), wire.receive, wire.send)
    assert (wire.status, wire.problem["code"]) == (413, "too_large")
    assert len(wire.chunks) == 7


async def test_what_fits_passes():
    seen = []

    async def app(scope, receive, send):
        seen.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 204, "headers": []})

    wire = Wire(b"x" * 1000)
    await BodyLimit(app)(scope(content_length="1000"), wire.receive, wire.send)
    assert seen == [b"x" * 1000]
    assert wire.status == 204


@pytest.mark.parametrize(
    "path", ["uploads/", f"uploads/{UPLOAD}/files/", "task/checkpoints/", "task/model/", "task/published/"]
)
def test_whatever_announces_files_may_be_as_long_as_their_list(settings, path):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 64 << 20
    assert limit_of(f"/api/v1/{path}") == FILE_LIST_BYTES


@pytest.mark.parametrize("verb", ["predict", "classify", "regress"])
@pytest.mark.parametrize("place", [f"services/{UPLOAD}", f"models/{UPLOAD}/stages/production"])
def test_requests_to_models_may_be_as_large_as_one_to_a_service(settings, place, verb):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 64 << 20
    assert limit_of(f"/api/v1/model-versions/{UPLOAD}/{verb}/") == MOST_BODY
    for rest in ("", "/versions/3", "/labels/production"):
        assert limit_of(f"/api/v1/{place}/v1/models/digits{rest}:{verb}") == MOST_BODY
    assert limit_of(f"/api/v1/{place}/v1/models/digits:other") < MOST_BODY


def test_parts_of_files_may_be_as_large_as_was_signed():
    url = storage().part_url("a", "0" * 32, 1, size=8 << 20, sha256="0" * 64, expires=timedelta(minutes=15)).url
    path, _, query = url.partition(":8080")[2].partition("?")
    assert limit_of(path, query.encode()) == 8 << 20
    assert limit_of(path, query.replace("size=8388608", "size=9388608").encode()) == FORM
