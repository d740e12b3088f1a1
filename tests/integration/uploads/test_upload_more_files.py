"""Announcing the files of an upload with many requests, and listing them by page."""

from __future__ import annotations

import uuid

import pytest

from apps.namespaces.selectors import namespace_for, quota_of
from apps.uploads import announcing, finishing, manifest
from apps.uploads.file_blocks import manifest_of
from apps.uploads.finishing import upload_finish
from apps.uploads.models import FileBlock, State, Upload
from apps.uploads.selectors import storage_used
from tests.integration.sending import begin, complete, files_of, part, put, sha256, sign
from yardmaster.storage.file_list import ListedFile


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def extend(client, upload: dict, after: int, files: list[dict]):
    return client.post(f"/api/v1/uploads/{upload['id']}/files/", {"after": after, "files": files})


def _listed(*paths: str, size: int = 1) -> list[dict]:
    return [{"path": path, "size": size} for path in paths]


def test_more_files_follow_and_all_become_one_version(ada, client):
    content = {f"{number:04}.txt": f"{number}".encode() for number in range(2_500)}
    files = files_of(content)
    upload = client.post("/api/v1/uploads/", {"kind": "dataset", "files": files[:700]}).json()
    for start, end in ((700, 1_500), (1_500, 2_500)):
        answer = extend(client, upload, start, files[start:end])
        assert (answer.status_code, answer.json()["file_count"]) == (200, end)
    assert [file.path for file in manifest_of(upload["id"])] == list(content)
    assert FileBlock.objects.count() == 3
    assert storage_used(namespace_for(ada, None)).reserved == sum(map(len, content.values()))
    for index, data in ((0, b"0"), (2_499, b"2499")):
        [url] = sign(client, upload["id"], index, data)
        assert put(url, data).status_code == 200
    page = client.get(f"/api/v1/uploads/{upload['id']}/files/", {"first": 2_000}).json()
    assert (len(page["results"]), page["next"], page["results"][-1]["done"]) == (500, None, [1])
    page = client.get(f"/api/v1/uploads/{upload['id']}/files/").json()
    assert (len(page["results"]), page["next"]) == (1_000, 1_000)
    assert [one["index"] for one in page["results"] if one["done"]] == [0]


def test_a_large_upload_is_completed_block_by_block(client, monkeypatch):
    for module in (announcing, manifest, finishing):
        monkeypatch.setattr(module, "FILES_AT_ONCE", 2)
    content = {f"{number}.txt": b"" for number in range(5)} | {"9.txt": b"full"}
    files = files_of(content)
    upload = client.post("/api/v1/uploads/", {"kind": "dataset", "files": files[:2]}).json()
    for start in (2, 4):
        assert extend(client, upload, start, files[start : start + 2]).status_code == 200
    answer = complete(client, upload["id"])
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (409, "files.5")
    [url] = sign(client, upload["id"], 5, b"full")
    assert put(url, b"full").status_code == 200
    assert complete(client, upload["id"]).status_code == 200
    made = client.post("/api/v1/datasets/", {"name": "many", "upload": upload["id"]}).json()["latest"]
    assert (made["files"], made["size"], made["added"]) == (6, 4, 6)


def test_a_request_that_is_repeated_changes_nothing(ada, client):
    upload = begin(client, {"a": b"1"})
    for _ in range(2):
        assert extend(client, upload, 1, _listed("b", "c")).json()["file_count"] == 3
    assert storage_used(namespace_for(ada, None)).reserved == 3
    answer = extend(client, upload, 1, _listed("d", "e"))
    assert (answer.status_code, answer.json()["code"]) == (409, "files_out_of_step")
    assert (extend(client, upload, 9, _listed("d")).status_code) == 409


@pytest.mark.parametrize(
    ("first", "more", "field", "code"),
    [
        ("m", ["a"], "files", "not_in_order"),
        ("m", ["m"], "files", "not_in_order"),
        ("m", ["z", "n"], "files", "not_in_order"),
        ("m", ["m-x", "m/x"], "files.1.path", "path_conflict"),
        ("m", ["n", "n"], "files.1.path", "path_doubled"),
        ("m", ["../n"], "files.0.path", "path_escape"),
        ("m", [], "files", "invalid"),
    ],
)
def test_files_that_cannot_follow_are_refused_by_name(ada, client, first, more, field, code):
    upload = begin(client, {first: b"1"})
    answer = extend(client, upload, 1, _listed(*more))
    assert (answer.status_code, answer.json()["errors"][0]["field"], answer.json()["errors"][0]["code"]) == (
        400, field, code,
    )  # fmt: skip
    assert storage_used(namespace_for(ada, None)).reserved == 1


def test_files_do_not_follow_others_in_another_order(client):
    upload = begin(client, {"b": b"1", "a": b"1"})
    assert extend(client, upload, 2, _listed("c")).json()["errors"][0]["code"] == "not_in_order"


def test_paths_that_differ_in_how_accents_are_composed_are_refused_at_the_end(ada, client, monkeypatch):
    for module in (announcing, manifest, finishing):
        monkeypatch.setattr(module, "FILES_AT_ONCE", 1)
    upload = client.post("/api/v1/uploads/", {"kind": "dataset", "files": _listed("cafe\u0301", size=0)}).json()
    assert extend(client, upload, 1, _listed("caf\u00e9", size=0)).status_code == 200
    answer = complete(client, upload["id"])
    assert (answer.status_code, answer.json()["code"]) == (422, "path_doubled")
    assert storage_used(namespace_for(ada, None)).reserved == 0


def test_there_are_bounds_of_files_and_bytes(ada, client, monkeypatch, settings):
    settings.YARDMASTER_FILES_PER_VERSION = 3
    monkeypatch.setattr(announcing, "MAX_CODE_FILES", 2)
    upload = begin(client, {"a": b"1"})
    assert extend(client, upload, 1, _listed("b", "c")).status_code == 200
    assert extend(client, upload, 3, _listed("d")).status_code == 400
    code = begin(client, {"a": b"1"}, "code")
    assert extend(client, code, 1, _listed("b", "c")).status_code == 400
    quota = quota_of(namespace_for(ada, None))
    quota.storage = 10
    quota.save()
    answer = extend(client, code, 1, _listed("b", size=100))
    assert (answer.status_code, answer.json()["code"]) == (409, "quota_full")
    assert Upload.objects.get(pk=code["id"]).file_count == 1


def test_a_foreign_upload_and_one_that_is_complete_accept_no_files(client, bob, signed_in):
    upload = begin(client, {"a": b""})
    assert extend(signed_in(bob), upload, 1, _listed("b")).status_code == 404
    assert complete(client, upload["id"]).status_code == 200
    assert extend(client, upload, 1, _listed("b")).json()["code"] == "upload_not_open"


def test_what_was_found_before_a_worker_was_killed_is_not_looked_at_again(client):
    upload = begin(client, {"a": b"1", "b": b"2"})
    for index, data in enumerate((b"1", b"2")):
        [url] = sign(client, upload["id"], index, data)
        put(url, data)
    pk = uuid.UUID(upload["id"])
    manifest.found_note(pk, {0: manifest.FileFacts(1, sha256(b"1"), None, "")})
    Upload.objects.filter(pk=pk).update(state=State.COMPLETING)
    upload_finish(pk)
    assert list(manifest_of(pk)) == [ListedFile("a", 1, "", sha256(b"1")), ListedFile("b", 1, "", sha256(b"2"))]
    assert part(0, 1)["file"] == 0
