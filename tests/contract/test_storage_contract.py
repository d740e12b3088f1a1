"""What every store must do. Another store joins by another name among the parameters of `stand`."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from django.test import Client

from apps.stores import own_storage, storage
from tests.real.ignite import Ignite
from tests.real.ignite_store import emptied, ignite_node, ignite_secure_node
from tests.real.object_stores import S3Server, minio_server, versitygw_server
from yardmaster.errors import YardmasterError
from yardmaster.storage.base import (
    Audience,
    KeyRefused,
    ObjectMissing,
    Part,
    PartsRefused,
    SignedRequest,
    Storage,
    UploadMissing,
)
from yardmaster_runner.checksums import of_parts

__all__ = ["ignite_node", "ignite_secure_node", "minio_server", "versitygw_server"]

QUARTER = timedelta(minutes=15)
PART_SIZE = 5 << 20  # the smallest that S3 takes


@dataclass(frozen=True)
class Stand:
    """A store, and how a client without any credential uses its addresses."""

    store: Storage
    put: Callable[[SignedRequest, bytes], Any]
    get: Callable[[str, dict[str, str]], tuple[int, dict[str, str], bytes]]
    composite: bool = True
    """Whether the checksum of an object of parts is kept; the portal reads the objects of a store without it."""


def _local(settings, tmp_path) -> Stand:
    options = settings.YARDMASTER_STORAGE["options"] | {"root": tmp_path / "objects", "base_url": "http://testserver"}
    settings.YARDMASTER_STORAGE = {"class": "yardmaster.storage.local.LocalStorage", "options": options}
    return _served_by_portal(composite=False)


def _ignite(settings, server: Ignite) -> Stand:
    options = {"base_url": "http://testserver", "signing_key": "k" * 32} | server.store_options()
    settings.YARDMASTER_STORAGE = {"class": "yardmaster.storage.ignite.IgniteStorage", "options": options}
    emptied(server)
    return _served_by_portal()


def _served_by_portal(*, composite: bool = True) -> Stand:
    def put(signed: SignedRequest, data: bytes) -> Any:
        return Client().generic(
            signed.method, signed.url.removeprefix("http://testserver"), data, "application/octet-stream",
            headers=dict(signed.headers),
        )  # fmt: skip

    def get(url: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        answer = Client().get(url.removeprefix("http://testserver"), headers=headers)
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        return answer.status_code, dict(answer.headers), body

    return Stand(storage(), put, get, composite)


def _s3(settings, server: S3Server) -> Stand:
    settings.YARDMASTER_STORAGE = server.settings()
    http = urllib3.PoolManager(retries=False)

    def put(signed: SignedRequest, data: bytes) -> Any:
        answer = http.request(signed.method, signed.url, body=data, headers=dict(signed.headers))
        return SimpleNamespace(status_code=answer.status, headers=answer.headers, content=answer.data)

    def get(url: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        answer = http.request("GET", url, headers=headers)
        return answer.status, dict(answer.headers), answer.data

    storage().prepare()
    return Stand(storage(), put, get)


@pytest.fixture(
    params=[
        "local",
        *(pytest.param(name, marks=pytest.mark.s3) for name in ("minio", "versitygw")),
        pytest.param("ignite", marks=pytest.mark.ignite),
        pytest.param("ignite_secure", marks=[pytest.mark.ignite, pytest.mark.long]),
    ]
)
def stand(request, settings, tmp_path) -> Iterator[Stand]:
    if request.param == "local":
        yield _local(settings, tmp_path)
    elif request.param.startswith("ignite"):
        made = _ignite(settings, request.getfixturevalue(f"{request.param}_node"))
        yield made
        own_storage().close()
    else:
        yield _s3(settings, request.getfixturevalue(f"{request.param}_server"))


@pytest.fixture
def store(stand: Stand) -> Storage:
    return stand.store


def _content(store: Storage, key: str, start: int = 0, length: int | None = None) -> bytes:
    with store.open_range(key, start, length) as stream:
        return b"".join(iter(lambda: stream.read(1 << 16), b""))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _send(stand: Stand, key: str, upload_id: str, number: int, data: bytes) -> Any:
    signed = stand.store.part_url(key, upload_id, number, size=len(data), sha256=_sha256(data), expires=QUARTER)
    return stand.put(signed, data)


# --- Objects


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("expected", [b"", b"some bytes"])
def test_an_object_is_read_as_it_was_put(store, expected, is_stream):
    found = store.put("a/b.bin", io.BytesIO(expected) if is_stream else expected)
    assert (found.key, found.size) == ("a/b.bin", len(expected))
    assert store.stat("a/b.bin") == found
    assert _content(store, "a/b.bin") == expected


def test_a_second_put_replaces_the_object_and_its_etag(store):
    before = store.put("k", b"one")
    after = store.put("k", b"two")
    assert _content(store, "k") == b"two"
    assert before.etag != after.etag


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, None, b"0123456789"),
        (3, None, b"3456789"),
        (3, 2, b"34"),
        (8, 9, b"89"),
        (10, None, b""),
        (99, 5, b""),
        (4, 0, b""),
    ],
)
def test_a_range_is_what_lies_within_it(store, start, length, expected):
    store.put("k", b"0123456789")
    assert _content(store, "k", start, length) == expected


@pytest.mark.parametrize("key", ["x", "x/y", "k/y"])
def test_what_is_not_there_is_missing(store, key):
    store.put("k", b"")
    with pytest.raises(ObjectMissing):
        store.stat(key)
    with pytest.raises(ObjectMissing):
        store.open_range(key)
    with pytest.raises(ObjectMissing):
        store.copy(key, "z")
    with pytest.raises(ObjectMissing):
        store.move(key, "z")
    store.delete(key)
    store.delete_prefix("nothing")
    assert list(store.list_prefix("nothing")) == []


def test_a_folder_is_no_object(store):
    store.put("a/b", b"x")
    with pytest.raises(ObjectMissing):
        store.stat("a")
    with pytest.raises(ObjectMissing):
        store.open_range("a")
    store.delete("a")
    assert store.stat("a/b").size == 1


@pytest.mark.parametrize(
    "key",
    ["", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/./b", ".", "a\0b", "\ud800", "x" * 1025, "a/" + "n" * 256],
)
def test_a_key_never_leads_out_of_the_store(store, key):
    for attempt in (
        lambda: store.put(key, b"x"),
        lambda: store.stat(key),
        lambda: store.open_range(key),
        lambda: store.delete(key),
        lambda: store.delete_prefix(key),
        lambda: store.multipart_begin(key, PART_SIZE),
        lambda: store.copy("k", key),
    ):
        with pytest.raises((KeyRefused, ObjectMissing)):
            attempt()


@pytest.mark.parametrize("name", ["ü ä.txt", "名前", "🙂", "a'b\"c", "a%2Fb", "a+b&c=d#e?f", "-rf", "...a", "x" * 255])
def test_odd_names_are_names_like_others(store, name):
    store.put(f"p/{name}", name.encode())
    assert _content(store, f"p/{name}") == name.encode()
    assert [found.key for found in store.list_prefix("p")] == [f"p/{name}"]


def test_a_prefix_is_a_folder_and_not_the_beginning_of_a_name(store):
    for key in ("d/1/a", "d/1/b/c", "d/10/a", "d/1x"):
        store.put(key, key.encode())
    assert sorted(found.key for found in store.list_prefix("d/1")) == ["d/1/a", "d/1/b/c"]
    store.delete_prefix("d/1")
    store.delete_prefix("d/1")
    assert sorted(found.key for found in store.list_prefix("d")) == ["d/10/a", "d/1x"]


def test_a_list_may_begin_at_a_key(store):
    keys = ["l/a-b", "l/a/b", "l/b", "l/é", "l/名"]
    for key in keys:
        store.put(key, b"x")
    for first in ("l/a-b", "l/a/b", "l/a0", "l/é", "l/z"):
        found = sorted(one.key for one in store.list_prefix("l", first))
        assert found == [key for key in keys if key >= first]


def test_copy_leaves_the_source_and_move_does_not(store):
    store.put("a", b"content")
    store.copy("a", "b/c")
    assert _content(store, "a") == _content(store, "b/c") == b"content"
    store.move("a", "d")
    with pytest.raises(ObjectMissing):
        store.stat("a")
    assert _content(store, "d") == b"content"


def test_a_repeated_move_or_delete_is_a_success(store):
    store.put("a", b"1")
    store.move("a", "b")
    assert store.move("a", "b").size == 1
    store.delete("b")
    store.delete("b")


# --- Uploads in parts


def test_parts_sent_in_any_order_make_the_object(stand):
    pieces = {1: b"a" * PART_SIZE, 2: b"b" * PART_SIZE, 3: b"c" * 77}
    upload_id = stand.store.multipart_begin("big", PART_SIZE)
    for number in (3, 1, 2):
        answer = _send(stand, "big", upload_id, number, pieces[number])
        assert answer.status_code == 200
        assert answer.headers["ETag"]
    parts = stand.store.parts("big", upload_id)
    assert [(part.number, part.size, part.sha256) for part in parts] == [
        (number, len(data), _sha256(data)) for number, data in sorted(pieces.items())
    ]
    with pytest.raises(ObjectMissing):
        stand.store.stat("big")
    assert stand.store.multipart_complete("big", upload_id, parts).size == 2 * PART_SIZE + 77
    assert _content(stand.store, "big") == b"".join(pieces[number] for number in (1, 2, 3))


def test_the_etag_of_the_answer_is_the_listed_one(stand):
    upload_id = stand.store.multipart_begin("k", PART_SIZE)
    answer = _send(stand, "k", upload_id, 1, b"abc")
    assert answer.headers["ETag"].strip('"') == stand.store.parts("k", upload_id)[0].etag.strip('"')


@pytest.mark.parametrize("data", [b"12", b"1234"])
def test_a_part_has_as_many_bytes_as_were_signed(stand, data):
    upload_id = stand.store.multipart_begin("k", PART_SIZE)
    signed = stand.store.part_url("k", upload_id, 1, size=3, sha256=_sha256(data), expires=QUARTER)
    assert 400 <= stand.put(signed, data).status_code < 500
    assert stand.store.parts("k", upload_id) == []


def test_a_part_has_the_checksum_that_was_signed(stand):
    upload_id = stand.store.multipart_begin("k", PART_SIZE)
    signed = stand.store.part_url("k", upload_id, 1, size=3, sha256=_sha256(b"abc"), expires=QUARTER)
    assert 400 <= stand.put(signed, b"xyz").status_code < 500
    assert stand.store.parts("k", upload_id) == []
    assert stand.put(signed, b"abc").status_code == 200


def test_a_whole_object_is_sent_in_one_request_where_the_store_takes_that(stand):
    signed = stand.store.object_url("k", size=3, sha256=_sha256(b"abc"), expires=QUARTER)
    if signed is None:
        assert stand.store.served() is not None, "a server of its own takes whole objects"
        return
    for wrong in (b"xyz", b"ab", b"abcd"):
        assert 400 <= stand.put(signed, wrong).status_code < 500
    with pytest.raises(ObjectMissing):
        stand.store.stat("k")
    assert stand.put(signed, b"abc").status_code == 200
    found = stand.store.stat("k")
    assert (found.size, found.sha256) == (3, _sha256(b"abc"))


def test_the_checksum_of_an_object_of_parts_is_that_of_its_parts(stand):
    pieces = [b"a" * PART_SIZE, b"b"]
    upload_id = stand.store.multipart_begin("k", PART_SIZE)
    for number, data in enumerate(pieces, start=1):
        _send(stand, "k", upload_id, number, data)
    found = stand.store.multipart_complete("k", upload_id, stand.store.parts("k", upload_id))
    assert found.sha256 == (of_parts(_sha256(data) for data in pieces) if stand.composite else "")


def test_a_part_sent_twice_is_the_last_one(stand):
    upload_id = stand.store.multipart_begin("k", PART_SIZE)
    _send(stand, "k", upload_id, 1, b"first, and longer")
    before = stand.store.parts("k", upload_id)
    _send(stand, "k", upload_id, 1, b"second")
    with pytest.raises(PartsRefused):
        stand.store.multipart_complete("k", upload_id, before)
    stand.store.multipart_complete("k", upload_id, stand.store.parts("k", upload_id))
    assert _content(stand.store, "k") == b"second"


def test_a_missing_part_leaves_the_upload_open(stand):
    upload_id = stand.store.multipart_begin("k", PART_SIZE)
    _send(stand, "k", upload_id, 1, b"a" * PART_SIZE)
    _send(stand, "k", upload_id, 3, b"c")
    arrived = stand.store.parts("k", upload_id)
    for wrong in (arrived, [], [replace(arrived[0], etag="0" * 32)], [arrived[0], Part(2, 5, "x")]):
        with pytest.raises(PartsRefused):
            stand.store.multipart_complete("k", upload_id, wrong)
    _send(stand, "k", upload_id, 2, b"b" * PART_SIZE)
    stand.store.multipart_complete("k", upload_id, stand.store.parts("k", upload_id))
    assert stand.store.stat("k").size == 2 * PART_SIZE + 1


def test_completing_twice_is_a_success(stand):
    upload_id = stand.store.multipart_begin("k", PART_SIZE)
    _send(stand, "k", upload_id, 1, b"abc")
    parts = stand.store.parts("k", upload_id)
    first = stand.store.multipart_complete("k", upload_id, parts)
    assert stand.store.multipart_complete("k", upload_id, parts) == first


def test_two_completes_at_once_make_one_object(stand):
    for turn in range(20):
        key = f"k{turn}"
        upload_id = stand.store.multipart_begin(key, PART_SIZE)
        _send(stand, key, upload_id, 1, b"abc")
        parts = stand.store.parts(key, upload_id)

        def complete(key=key, upload_id=upload_id, parts=parts) -> bool:
            try:
                stand.store.multipart_complete(key, upload_id, parts)
            except YardmasterError:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda _: complete(), range(4)))
        assert any(done)
        assert _content(stand.store, key) == b"abc"


def test_an_upload_is_over_once_complete_or_aborted(stand):
    for end in ("complete", "abort"):
        upload_id = stand.store.multipart_begin("k", PART_SIZE)
        _send(stand, "k", upload_id, 1, b"abc")
        if end == "complete":
            stand.store.multipart_complete("k", upload_id, stand.store.parts("k", upload_id))
        else:
            stand.store.multipart_abort("k", upload_id)
            stand.store.multipart_abort("k", upload_id)
        with pytest.raises(UploadMissing):
            stand.store.parts("k", upload_id)
        assert _send(stand, "k", upload_id, 1, b"xyz").status_code == 404
        assert _content(stand.store, "k") == b"abc"


def test_an_upload_belongs_to_its_key(stand):
    upload_id = stand.store.multipart_begin("mine", PART_SIZE)
    assert _send(stand, "yours", upload_id, 1, b"abc").status_code == 404
    with pytest.raises(UploadMissing):
        stand.store.parts("yours", upload_id)
    stand.store.multipart_abort("yours", upload_id)
    assert stand.store.parts("mine", upload_id) == []


@pytest.mark.parametrize("upload_id", ["", "..", "../objects", "a" * 32, "x" * 5000])
def test_an_upload_id_that_never_was_is_missing(store, upload_id):
    with pytest.raises(UploadMissing):
        store.parts("k", upload_id)
    with pytest.raises(UploadMissing):
        store.multipart_complete("k", upload_id, [Part(1, 3, "x")])
    store.multipart_abort("k", upload_id)


# --- Read addresses


def test_a_read_address_gives_the_bytes_as_an_attachment(stand):
    stand.store.put("p/q.txt", b"0123456789")
    status, headers, body = stand.get(stand.store.read_url("p/q.txt", QUARTER, filename="näme.txt"), {})
    assert (status, body) == (200, b"0123456789")
    assert headers["Content-Disposition"].startswith("attachment")
    assert "n%C3%A4me.txt" in headers["Content-Disposition"]


def test_a_read_address_gives_a_range(stand):
    stand.store.put("k", b"0123456789")
    status, headers, body = stand.get(stand.store.read_url("k", QUARTER), {"Range": "bytes=2-4"})
    assert (status, body) == (206, b"234")
    assert headers["Content-Range"] == "bytes 2-4/10"


def test_a_read_address_of_nothing_is_a_404(stand):
    assert stand.get(stand.store.read_url("k", QUARTER), {})[0] == 404


def test_an_address_leads_where_its_audience_is_said_to_find_the_store(store):
    for audience in Audience:
        assert store.read_url("k", QUARTER, audience=audience).startswith(store.origin(audience) + "/")
        signed = store.part_url("k", "0" * 32, 1, size=1, sha256="0" * 64, expires=QUARTER, audience=audience)
        assert signed.url.startswith(store.origin(audience) + "/")


def test_a_store_is_prepared_again_without_harm(store):
    store.put("k", b"x")
    store.prepare()
    assert store.stat("k").size == 1


def test_a_read_address_opens_no_other_object(stand):
    stand.store.put("mine", b"m")
    stand.store.put("yours", b"y")
    assert stand.get(stand.store.read_url("mine", QUARTER).replace("mine", "yours"), {})[0] == 403
