"""Signed part addresses, and what arrives at them."""

from __future__ import annotations

import pytest

from apps.uploads.models import FileBatch, Upload
from tests.integration.sending import begin, complete, part, put, send, sign

MIB = 1 << 20
TWO_PARTS = b"a" * (8 * MIB) + b"tail"


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def _done(client, upload: str) -> list[int]:
    return client.get(f"/api/v1/uploads/{upload}/").json()["files"][0]["done"]


def test_what_has_arrived_is_shown_so_that_a_client_can_go_on(client):
    upload = begin(client, {"f": TWO_PARTS})["id"]
    assert _done(client, upload) == []
    [first, second] = sign(client, upload, 0, TWO_PARTS[: 8 * MIB], b"tail")
    assert put(second, b"tail").status_code == 200
    assert _done(client, upload) == [2]
    assert put(first, TWO_PARTS[: 8 * MIB]).status_code == 200
    assert _done(client, upload) == [1, 2]
    assert complete(client, upload).json()["state"] == "complete"


def test_the_answer_to_a_part_has_an_etag_and_says_nothing_more(client):
    upload = begin(client, {"f": b"abc"})["id"]
    [url] = sign(client, upload, 0, b"abc")
    answer = put(url, b"abc")
    assert answer.headers["ETag"].strip('"')
    assert answer.content == b""


def test_a_part_is_sent_without_cookie_token_or_csrf(client):
    from django.test import Client

    upload = begin(client, {"f": b"abc"})["id"]
    [url] = sign(client, upload, 0, b"abc")
    strict = Client(enforce_csrf_checks=True)
    assert strict.put(url, b"abc", "application/octet-stream").status_code == 200


@pytest.mark.parametrize("parts", [[0], [-1], [10_001], [2], [1, 2], [], [1] * 1001, ["x"], [1.5], [True], [10**20]])
def test_parts_that_a_file_does_not_have_are_not_signed(client, parts):
    upload = begin(client, {"f": b"abc"})["id"]
    answer = client.post(f"/api/v1/uploads/{upload}/parts/", {"parts": [part(0, one) for one in parts]})
    assert answer.status_code == 400


@pytest.mark.parametrize("file", [1, -1, 10**12, "a", None])
def test_files_that_an_upload_does_not_have_are_not_signed(client, file):
    upload = begin(client, {"f": b"abc"})["id"]
    answer = client.post(f"/api/v1/uploads/{upload}/parts/", {"parts": [part(file, 1)]})
    assert answer.status_code == 400


@pytest.mark.parametrize("sha256", ["", "x" * 64, "A" * 64, "0" * 63, None, 0, "0" * 64 + "-2"])
def test_a_part_without_a_checksum_is_not_signed(client, sha256):
    upload = begin(client, {"f": b"abc"})["id"]
    answer = client.post(f"/api/v1/uploads/{upload}/parts/", {"parts": [part(0, 1) | {"sha256": sha256}]})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "parts.0"


def test_another_content_than_was_signed_is_refused_and_does_not_count(client):
    upload = begin(client, {"f": b"abc"})["id"]
    [url] = sign(client, upload, 0, b"abc")
    answer = put(url, b"xyz")
    assert (answer.status_code, answer.json()["code"]) == (400, "checksum_mismatch")
    assert _done(client, upload) == []
    assert put(url, b"abc").status_code == 200
    assert complete(client, upload).status_code == 200


def test_parts_of_several_files_are_signed_in_one_request(client):
    files = {"a": TWO_PARTS, "b": b"bb", "c": b"c"}
    begun = begin(client, files)
    wanted = [part(0, 1, TWO_PARTS[: 8 * MIB]), part(0, 2, b"tail"), part(1, 1, b"bb"), part(2, 1, b"c")]
    signed = client.post(f"/api/v1/uploads/{begun['id']}/parts/", {"parts": wanted}).json()["urls"]
    assert [(one["file"], one["part"]) for one in signed] == [(0, 1), (0, 2), (1, 1), (2, 1)]
    for one in signed:
        content = files[begun["files"][one["file"]]["path"]]
        start = (one["part"] - 1) * 8 * MIB
        assert put(one["url"], content[start : start + 8 * MIB]).status_code == 200
    assert complete(client, begun["id"]).json()["state"] == "complete"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "parts"),
        ({"file": 0, "parts": [1]}, "file"),
        ({"parts": {}}, "parts"),
        ({"parts": [1]}, "parts.0"),
        ({"parts": []}, "parts"),
        ({"parts": [part(0, 1), {"file": 1, "part": 1}]}, "parts.1"),
        ({"parts": [part(0, 1), part(1, 1) | {"more": 1}]}, "parts.1"),
        ({"parts": [part(0, 1), part(2, 1)]}, "parts.1.file"),
        ({"parts": [part(0, 1), part(1, 2)]}, "parts.1.part"),
        ({"parts": [part(0, 1)] * 1001}, "parts"),
    ],
)
def test_what_is_wrong_with_the_wanted_parts_is_named_and_nothing_is_begun(client, body, field):
    upload = begin(client, {"a": b"a", "b": b"b"})["id"]
    answer = client.post(f"/api/v1/uploads/{upload}/parts/", body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == field
    assert not FileBatch.objects.exists()


def test_an_empty_file_has_no_parts_and_is_there_when_complete(client, store):
    upload = begin(client, {"empty": b""})["id"]
    assert client.post(f"/api/v1/uploads/{upload}/parts/", {"parts": [part(0, 1)]}).status_code == 400
    assert complete(client, upload).status_code == 200
    assert store.stat(f"{Upload.objects.get().key_prefix}/empty").size == 0


def test_an_address_is_good_for_its_own_part_only(client):
    upload = begin(client, {"f": TWO_PARTS, "g": b"tail"})["id"]
    [first] = sign(client, upload, 0, TWO_PARTS[: 8 * MIB])
    path, _, query = first.partition("?")
    assert put(f"{path[:-1]}2?{query}", TWO_PARTS[: 8 * MIB]).status_code == 403
    [other] = sign(client, upload, 1, b"tail")
    assert put(f"{other.partition('?')[0]}?{query}", b"tail").status_code == 403
    assert put(path, b"x").status_code == 403
    assert put(first[:-1] + ("0" if first[-1] != "0" else "1"), b"x").status_code == 403
    assert _done(client, upload) == []


@pytest.mark.parametrize("method", ["get", "post", "delete", "patch", "head"])
def test_an_address_for_writing_does_nothing_else(client, method):
    upload = begin(client, {"f": b"abc"})["id"]
    [url] = sign(client, upload, 0, b"abc")
    assert getattr(client, method)(url).status_code == 405


@pytest.mark.parametrize("data", [b"", b"ab", b"abcd", b"x" * MIB])
def test_a_part_of_another_size_is_refused_and_does_not_count(client, data):
    upload = begin(client, {"f": b"abc"})["id"]
    [url] = sign(client, upload, 0, b"abc")
    answer = put(url, data)
    assert answer.status_code in (400, 413)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert _done(client, upload) == []
    assert complete(client, upload).json()["code"] == "parts_missing"


def test_a_compressed_part_is_refused(client):
    upload = begin(client, {"f": b"abc"})["id"]
    [url] = sign(client, upload, 0, b"abc")
    assert put(url, b"abc", **{"Content-Encoding": "gzip"}).status_code == 415


def test_a_part_sent_twice_is_the_last_one(client, store):
    upload = begin(client, {"f": b"abc"})["id"]
    [url] = sign(client, upload, 0, b"old")
    put(url, b"old")
    put(sign(client, upload, 0, b"new")[0], b"new")
    complete(client, upload)
    with store.open_range(f"{Upload.objects.get().key_prefix}/f") as stream:
        assert stream.read() == b"new"


def test_a_complete_upload_takes_no_more_parts(client, store):
    upload = begin(client, {"f": b"abc"})["id"]
    [url] = sign(client, upload, 0, b"abc")
    put(url, b"abc")
    complete(client, upload)
    assert put(url, b"xyz").status_code == 404
    answer = client.post(f"/api/v1/uploads/{upload}/parts/", {"parts": [part(0, 1)]})
    assert (answer.status_code, answer.json()["code"]) == (409, "upload_not_open")
    with store.open_range(f"{Upload.objects.get().key_prefix}/f") as stream:
        assert stream.read() == b"abc"


def test_an_aborted_upload_takes_no_more_parts_and_leaves_nothing(client, tmp_path):
    content = {"f": TWO_PARTS}
    upload = begin(client, content)
    send(client, upload, content)
    [url] = sign(client, upload["id"], 0, TWO_PARTS[: 8 * MIB])
    client.delete(f"/api/v1/uploads/{upload['id']}/")
    assert put(url, TWO_PARTS[: 8 * MIB]).status_code == 404
    assert [path for path in (tmp_path / "objects").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "path", ['a"b;c.txt', "日本/文.txt", "🙂" * 20, "a%2F..%2Fb", "a\u00a0b", "<script>.html", "x" * 250]
)
def test_odd_names_travel_whole(client, store, path):
    content = {path: b"content"}
    upload = begin(client, content)
    send(client, upload, content)
    assert complete(client, upload["id"]).status_code == 200
    with store.open_range(f"{Upload.objects.get().key_prefix}/{path}") as stream:
        assert stream.read() == b"content"


def test_a_full_disk_is_told_to_the_sender_and_the_upload_goes_on_when_there_is_room(client, monkeypatch):
    import resource

    data = b"x" * (2 * MIB)
    upload = begin(client, {"f": data})["id"]
    [url] = sign(client, upload, 0, data)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The system refuses larger files, as a full disk does. Above what the test client itself needs.
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, before[1]))
    try:
        answer = put(url, data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_full")
    assert answer.json()["remedy"]
    assert _done(client, upload) == []
    assert put(url, data).status_code == 200
    assert complete(client, upload).status_code == 200
