"""Uploads that go on where they were cut off, and downloads that are what they were."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.flaky_server import Asked, Cut, FlakyServer, flaky_server
from yardmaster_client import downloads, local_files, uploads
from yardmaster_client.connections import Body, FilePart
from yardmaster_client.downloads import RemoteFile, download
from yardmaster_client.errors import NotReachable, PortalError
from yardmaster_client.local_files import LocalFile, find_files
from yardmaster_client.models import Dataset, DatasetVersion
from yardmaster_client.stores import Store
from yardmaster_client.transport import Transport
from yardmaster_client.uploads import upload

PART = 10


class UploadingPortal:
    """The upload contract in memory. `breaks_after`: so many parts arrive, then none."""

    def __init__(self, server: FlakyServer) -> None:
        self.server = server
        self.files: list[dict[str, Any]] = []
        self.parts: dict[tuple[int, int], bytes] = {}
        self.digests: dict[tuple[int, int], str] = {}
        self.begun = 0
        self.state = "open"
        self.breaks_after: int | None = None
        self.problem: dict[str, Any] | None = None
        self.is_large = False
        self.refusals: list[tuple[int, Any]] = []
        server.by_path = self

    def __call__(self, asked: Asked) -> tuple[int, Any] | None:
        path = asked.path.removeprefix("/api/v1/").partition("?")[0]
        if asked.method == "PUT":
            return self._take_part(path, asked.body)
        if path == "uploads/":
            self.begun, self.state = self.begun + 1, "open"
            self.files = json.loads(asked.body)["files"]
            return 201, self._upload()
        if path.endswith("/files/"):
            return self._files(asked)
        if path.endswith("/parts/"):
            wanted = json.loads(asked.body)["parts"]
            self.digests |= {(one["file"], one["part"]): one["sha256"] for one in wanted}
            return 200, {"urls": [self._signed(one["file"], one["part"]) for one in wanted]}
        if path.endswith("/complete/"):
            self.state = "failed" if self.problem else "completing"
            return 202, self._upload()
        if self.state == "completing":
            self.state = "complete"
        return 200, self._upload()

    def _files(self, asked: Asked) -> tuple[int, Any]:
        """More of them announced, or one page of how far each has come."""
        if asked.method == "POST":
            body = json.loads(asked.body)
            assert body["after"] == len(self.files)
            self.files += body["files"]
            return 200, self._upload()
        first = int(asked.path.partition("first=")[2])
        return 200, {"results": self._progress()[first : first + 1], "next": first + 1 if first < 1 else None}

    def _take_part(self, path: str, body: bytes) -> tuple[int, Any] | None:
        if self.breaks_after is not None and len(self.parts) >= self.breaks_after:
            return None
        if self.refusals:
            return self.refusals.pop(0)
        _, file, part = path.lstrip("/").split("/")
        self.parts[int(file), int(part)] = body
        return 200, {}

    def _signed(self, file: int, part: int) -> dict[str, Any]:
        return {
            "file": file,
            "part": part,
            "method": "PUT",
            "url": f"{self.server.url}/part/{file}/{part}",
            "headers": {},
        }

    def _upload(self) -> dict[str, Any]:
        if self.is_large:
            return {
                "id": "u1", "state": self.state, "part_size": PART, "file_count": len(self.files), "problem": None,
            }  # fmt: skip
        return {
            "id": "u1", "state": self.state, "part_size": PART, "files": self._progress(), "problem": self.problem,
            "file_count": len(self.files),
        }  # fmt: skip

    def _progress(self) -> list[dict[str, Any]]:
        return [
            {"index": index, "path": one["path"], "size": one["size"], "parts": -(-one["size"] // PART),
             "done": sorted(part for file, part in self.parts if file == index)}
            for index, one in enumerate(self.files)
        ]  # fmt: skip

    def content(self, index: int) -> bytes:
        return b"".join(data for (file, _), data in sorted(self.parts.items()) if file == index)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__" / "x.pyc").write_bytes(b"no")
    (folder / "a.bin").write_bytes(bytes(range(95)))
    (folder / "empty").touch()
    (folder / "link").symlink_to(folder / "a.bin")
    return folder


def test_files_arrive_whole_with_progress(server: FlakyServer, transport: Transport, folder: Path) -> None:
    portal = UploadingPortal(server)
    seen: list[tuple[int, int]] = []
    assert upload(transport, "dataset", find_files([folder]), progress=lambda *at: seen.append(at)) == "u1"
    assert [one["path"] for one in portal.files] == ["a.bin", "empty"]
    assert portal.digests == {at: hashlib.sha256(data).hexdigest() for at, data in portal.parts.items()}
    assert portal.content(0) == bytes(range(95))
    assert (seen[0], seen[-1]) == ((0, 95), (95, 95))


def test_mlflow_7564_a_broken_upload_goes_on_where_it_was(
    server: FlakyServer, transport: Transport, folder: Path
) -> None:
    portal = UploadingPortal(server)
    portal.breaks_after = 4
    files = find_files([folder])
    with pytest.raises(NotReachable):
        upload(transport, "dataset", files)
    portal.breaks_after = None
    puts_before = sum(asked.method == "PUT" for asked in server.asked)
    assert upload(transport, "dataset", files) == "u1"
    assert sum(asked.method == "PUT" for asked in server.asked) - puts_before == 10 - 4
    assert portal.begun == 1
    assert portal.content(0) == bytes(range(95))


def interrupted_while_it_waits(
    transport: Transport, files: list[LocalFile], monkeypatch: pytest.MonkeyPatch, *, unpack: bool = False
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(uploads, "_wait_until_complete", interrupted)
        with pytest.raises(KeyboardInterrupt):
            upload(transport, "dataset", files, unpack=unpack)


def test_an_upload_that_the_portal_completed_after_the_client_was_killed_is_not_sent_again(
    server: FlakyServer, transport: Transport, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal, files = UploadingPortal(server), find_files([folder])
    interrupted_while_it_waits(transport, files, monkeypatch)
    portal.state = "complete"
    puts_before = sum(asked.method == "PUT" for asked in server.asked)
    assert upload(transport, "dataset", files) == "u1"
    assert sum(asked.method == "PUT" for asked in server.asked) == puts_before
    assert portal.begun == 1


def test_an_upload_that_was_completed_as_an_archive_does_not_stand_for_its_content(
    server: FlakyServer, transport: Transport, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal, files = UploadingPortal(server), find_files([folder])
    interrupted_while_it_waits(transport, files, monkeypatch)
    portal.state = "complete"
    interrupted_while_it_waits(transport, files, monkeypatch, unpack=True)
    assert portal.begun == 2


def s3_error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>It is so.</Message><Resource>/b/k</Resource></Error>".encode()


@pytest.mark.parametrize(
    "refusal", [(403, s3_error("AccessDenied")), (400, s3_error("XAmzContentChecksumMismatch")), (503, b""), (503, {})]
)
def test_an_expired_address_damage_on_the_way_and_a_busy_store_cost_another_try(
    server: FlakyServer, transport: Transport, folder: Path, refusal: tuple[int, Any]
) -> None:
    portal = UploadingPortal(server)
    portal.refusals = [refusal]
    upload(transport, "dataset", find_files([folder]))
    assert portal.content(0) == bytes(range(95))


def test_a_store_that_is_full_half_way_is_named_and_the_upload_continues_later(
    server: FlakyServer, transport: Transport, folder: Path
) -> None:
    portal = UploadingPortal(server)
    portal.refusals = [(200, {}), (507, s3_error("XMinioStorageFull"))]
    with pytest.raises(PortalError, match="full") as caught:
        upload(transport, "dataset", find_files([folder]))
    assert (caught.value.code, str(caught.value)) == ("storage_full", "a.bin: The object store is full.")
    assert "repeat the command" in caught.value.remedy
    upload(transport, "dataset", find_files([folder]))
    assert (portal.begun, portal.content(0)) == (1, bytes(range(95)))


def test_what_the_store_refuses_for_good_is_said_in_its_words(
    server: FlakyServer, transport: Transport, folder: Path
) -> None:
    UploadingPortal(server).refusals = [(403, s3_error("SignatureDoesNotMatch"))] * 100
    with pytest.raises(PortalError, match="403 SignatureDoesNotMatch: It is so") as caught:
        upload(transport, "dataset", find_files([folder]))
    assert server.url not in str(caught.value)


def test_many_files_are_announced_with_many_requests_and_continued_by_page(
    server: FlakyServer, transport: Transport, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_files, "_ANNOUNCED_AT_ONCE", 1)
    portal = UploadingPortal(server)
    portal.is_large, portal.breaks_after = True, 4
    with pytest.raises(NotReachable):
        upload(transport, "dataset", find_files([folder]))
    assert [one["path"] for one in portal.files] == ["a.bin", "empty"]
    portal.breaks_after = None
    puts_before = sum(asked.method == "PUT" for asked in server.asked)
    assert upload(transport, "dataset", find_files([folder])) == "u1"
    assert sum(asked.method == "PUT" for asked in server.asked) - puts_before == 10 - 4
    assert (portal.begun, portal.content(0)) == (1, bytes(range(95)))


def test_folders_are_read_in_the_order_of_their_paths(tmp_path: Path) -> None:
    paths = ["a-b", "a/b", "a/c/d", "a0", "\u540d", "b"]
    for path in paths:
        (tmp_path / "top" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "top" / path).touch()
    assert [file.path for file in find_files([tmp_path / "top"])] == sorted(paths)


def test_links_are_left_out_with_their_names_or_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "around").symlink_to(folder)
    (folder / "gone").symlink_to(tmp_path / "nothing")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.bin").write_bytes(b"x")
    (folder / "other").symlink_to(tmp_path / "elsewhere")
    left_out: list[str] = []
    assert [one.path for one in find_files([folder], left_out=left_out.append)] == ["a.bin", "empty"]
    assert sorted(left_out) == ["deep/around", "gone", "link", "other"]
    left_out.clear()
    found = find_files([folder], follow_links=True, left_out=left_out.append)
    assert [one.path for one in found] == ["a.bin", "empty", "link", "other/x.bin"]
    assert sorted(left_out) == ["deep/around", "gone"]
    assert {one.path: one.size for one in found}["link"] == 95


def test_links_that_lead_to_each_other_end(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / one).mkdir()
        (tmp_path / one / "file").touch()
        (tmp_path / one / "to").symlink_to(tmp_path / other)
    found = [one.path for one in find_files([tmp_path], follow_links=True)]
    assert found == ["a/file", "a/to/file", "b/file", "b/to/file"]


def test_other_files_are_another_upload(server: FlakyServer, transport: Transport, folder: Path) -> None:
    portal = UploadingPortal(server)
    portal.breaks_after = 4
    with pytest.raises(NotReachable):
        upload(transport, "dataset", find_files([folder]))
    portal.breaks_after = None
    portal.parts.clear()
    (folder / "a.bin").write_bytes(b"other")
    upload(transport, "dataset", find_files([folder]))
    assert portal.begun == 2
    assert portal.content(0) == b"other"


def test_what_the_portal_finds_wrong_afterwards_is_raised(
    server: FlakyServer, transport: Transport, folder: Path
) -> None:
    UploadingPortal(server).problem = {"status": 400, "code": "invalid", "detail": "It is a zip bomb.", "errors": []}
    with pytest.raises(PortalError, match="zip bomb"):
        upload(transport, "code", find_files([folder]))


def test_there_must_be_something_to_upload_and_no_path_twice(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        find_files([tmp_path / "none"])
    (tmp_path / "bare").mkdir()
    with pytest.raises(ValueError, match="Nothing to upload"):
        find_files([tmp_path / "bare"])
    (tmp_path / "a.bin").touch()
    with pytest.raises(ValueError, match="would both become"):
        find_files([folder, tmp_path / "a.bin"])


def remote(server: FlakyServer, path: str, data: bytes, sha256: str | None = None) -> RemoteFile:
    return RemoteFile(path, len(data), sha256 or hashlib.sha256(data).hexdigest(), f"{server.url}/files/{path}")


def test_files_are_fetched_once(server: FlakyServer, transport: Transport, tmp_path: Path) -> None:
    server.answers = [(200, b"data")]
    files = [remote(server, "deep/a.txt", b"data"), remote(server, "b.txt", b"data")]
    done: list[tuple[int, int]] = []
    assert len(download(transport, files, tmp_path, lambda *at: done.append(at))) == 2
    assert (tmp_path / "deep" / "a.txt").read_bytes() == b"data"
    assert done[-1] == (8, 8)
    download(transport, files, tmp_path)
    assert len(server.asked) == 2


def test_an_object_that_is_gone_is_named(transport: Transport, tmp_path: Path) -> None:
    with flaky_server() as store:
        store.answers = [(404, s3_error("NoSuchKey"))]
        with pytest.raises(PortalError, match=r"deep/a\.txt: This file is no longer in the object store") as caught:
            download(transport, [remote(store, "deep/a.txt", b"data")], tmp_path)
    assert (caught.value.code, list((tmp_path / "deep").iterdir())) == ("object_missing", [])


def test_a_damaged_file_is_refused_and_not_left_behind(
    server: FlakyServer, transport: Transport, tmp_path: Path
) -> None:
    server.answers = [(200, b"dat4")]
    with pytest.raises(PortalError, match="damaged"):
        download(transport, [remote(server, "a.txt", b"data")], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_version_is_downloaded_with_an_address_for_each_file_at_once(
    server: FlakyServer, transport: Transport, tmp_path: Path
) -> None:
    """And a file whose address has expired meanwhile is asked for by itself."""
    content = {"a.txt": b"one", "deep/b.txt": b"second"}

    def answer(asked: Asked) -> tuple[int, Any]:
        path, _, query = asked.path.removeprefix("/api/v1/").partition("?")
        if path == "dataset-versions/v1/files/":
            assert "addresses=1" in query
            rows = [
                {"path": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(),
                 "url": f"{server.url}/signed/{name}?signature=1"}
                for name, data in content.items()
            ]  # fmt: skip
            return 200, {"results": rows, "next": None}
        if path == "dataset-versions/v1/":
            return 200, {"id": "v1", "number": 1, "size": 9}
        if path.startswith("/signed/deep"):
            return 403, {}
        return 200, content["a.txt" if path.startswith("/signed/") else "deep/b.txt"]

    server.by_path = answer
    seen: list[tuple[int, int]] = []
    store = Store(transport, "dataset", Dataset, DatasetVersion)
    found = store.download("v1", tmp_path, lambda *at: seen.append(at))
    assert {str(one.relative_to(tmp_path)): one.read_bytes() for one in found} == content
    assert (seen[0], seen[-1]) == ((0, 9), (9, 9))
    asked = [one.path.partition("?")[0] for one in server.asked]
    assert sorted(asked) == [
        "/api/v1/dataset-versions/v1/", "/api/v1/dataset-versions/v1/files/",
        "/api/v1/dataset-versions/v1/files/content/", "/signed/a.txt", "/signed/deep/b.txt",
    ]  # fmt: skip
    assert ["authorization" in one.headers for one in server.asked if "/signed/" in one.path] == [False, False]


@pytest.mark.parametrize(("small", "kept", "from_memory"), [(5, 25, 1), (10, 25, 2), (4, 25, 0)])
def test_small_parts_are_sent_from_memory_and_large_ones_from_their_files(
    server: FlakyServer, transport: Transport, folder: Path, monkeypatch: pytest.MonkeyPatch,
    small: int, kept: int, from_memory: int,
) -> None:  # fmt: skip
    """Nine parts of 10 bytes and one of 5: as many as may be kept are, of those that are small."""
    monkeypatch.setattr(uploads, "_SMALL", small)
    monkeypatch.setattr(uploads, "_KEPT_BYTES", kept)
    sent: list[type] = []
    put = transport.put_part

    def noted(url: str, data: Body, headers: Mapping[str, str]) -> str:
        sent.append(type(data))
        return put(url, data, headers)

    monkeypatch.setattr(transport, "put_part", noted)
    portal = UploadingPortal(server)
    upload(transport, "dataset", find_files([folder]))
    assert portal.content(0) == bytes(range(95))
    assert (sent.count(bytes), sent.count(FilePart)) == (from_memory, 10 - from_memory)


def test_sending_begins_after_few_bytes_were_hashed(
    server: FlakyServer, transport: Transport, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_FIRST_BYTES", 20)
    monkeypatch.setattr(uploads, "_SIGNED_BYTES", 40)
    portal = UploadingPortal(server)
    upload(transport, "dataset", find_files([folder]))
    asked = [json.loads(one.body)["parts"] for one in server.asked if one.path.endswith("/parts/")]
    assert [len(parts) for parts in asked] == [2, 4, 4]
    assert portal.content(0) == bytes(range(95))


def test_a_file_that_becomes_shorter_while_it_is_sent_is_named(
    server: FlakyServer, transport: Transport, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_SMALL", 0)
    portal = UploadingPortal(server)
    answer = portal.__call__

    def shortened(asked: Asked) -> tuple[int, Any] | None:
        if asked.path.endswith("/parts/"):
            (folder / "a.bin").write_bytes(bytes(range(40)))
        return answer(asked)

    server.by_path = shortened
    with pytest.raises(ValueError, match=r"a\.bin was changed while it was uploaded: upload it again"):
        upload(transport, "dataset", find_files([folder]))
    assert portal.state == "open"


@pytest.mark.parametrize("cut", [None, 150, 256])
def test_a_file_of_many_pieces_is_received_in_one_buffer_also_after_a_break(
    transport: Transport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int | None
) -> None:
    monkeypatch.setattr(downloads, "PIECE", 64)
    data = bytes(range(256)) + b"end"

    def answer(asked: Asked) -> tuple[int, Any]:
        first = int(asked.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if cut is not None and not first:
            return 200, Cut(data, cut)
        return (206 if first else 200), data[first:]

    with flaky_server() as store:
        store.by_path = answer
        [found] = download(transport, [remote(store, "a.bin", data)], tmp_path)
        assert found.read_bytes() == data
        assert len(store.asked) == (1 if cut is None else 2)


DATA = bytes(range(256)) * 4


def ranged(asked: Asked) -> tuple[int, Any]:
    """What a store answers that sends `DATA` from any byte on."""
    first = int(asked.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
    return (206 if first else 200), DATA[first:]


def test_a_download_that_was_given_up_continues_in_a_later_run(transport: Transport, tmp_path: Path) -> None:
    with flaky_server() as store:
        file = remote(store, "a.bin", DATA)
        store.by_path = lambda asked: None if "range" in asked.headers else (200, Cut(DATA, 700))
        with pytest.raises(NotReachable):
            download(transport, [file], tmp_path)
        assert [one.name for one in tmp_path.iterdir()] == [".a.bin.part"]
        store.asked.clear()
        store.by_path = ranged
        [found] = download(transport, [file], tmp_path)
        assert [asked.headers.get("range") for asked in store.asked] == ["bytes=700-"]
    assert found.read_bytes() == DATA
    assert list(tmp_path.iterdir()) == [found]


@pytest.mark.parametrize(
    ("draft", "ranges"),
    [
        (DATA[:700], ["bytes=700-"]),
        (DATA, []),
        (b"x" * 700, ["bytes=700-", None]),
        (b"x" * len(DATA), [None]),
        (DATA + b"more", [None]),
        (b"", [None]),
    ],
)
def test_what_a_killed_download_left_becomes_the_file_only_where_it_fits(
    transport: Transport, tmp_path: Path, draft: bytes, ranges: list[str | None]
) -> None:
    (tmp_path / ".a.bin.part").write_bytes(draft)
    with flaky_server() as store:
        store.by_path = ranged
        [found] = download(transport, [remote(store, "a.bin", DATA)], tmp_path)
        assert [asked.headers.get("range") for asked in store.asked] == ranges
    assert found.read_bytes() == DATA
    assert list(tmp_path.iterdir()) == [found]


@pytest.mark.parametrize("answer", [(200, DATA), (416, s3_error("InvalidRange"))])
def test_a_server_that_does_not_continue_is_asked_for_all_of_it(
    transport: Transport, tmp_path: Path, answer: tuple[int, Any]
) -> None:
    (tmp_path / ".a.bin.part").write_bytes(DATA[:700])
    with flaky_server() as store:
        store.by_path = lambda asked: answer if "range" in asked.headers else (200, DATA)
        [found] = download(transport, [remote(store, "a.bin", DATA)], tmp_path)
        assert len(store.asked) == 2
    assert found.read_bytes() == DATA


def test_a_portal_that_sends_all_of_a_file_itself_is_read_past_what_is_here(
    server: FlakyServer, transport: Transport, tmp_path: Path
) -> None:
    (tmp_path / ".a.bin.part").write_bytes(DATA[:700])
    server.answers = [(200, DATA)]
    address = "versions/1/files/a.bin"
    file = RemoteFile("a.bin", len(DATA), hashlib.sha256(DATA).hexdigest(), address)
    [found] = download(transport, [file], tmp_path)
    assert found.read_bytes() == DATA
    assert len(server.asked) == 1


def test_a_file_without_a_checksum_is_never_continued(transport: Transport, tmp_path: Path) -> None:
    """An object of a registered bucket: nothing would tell whether the draft is of the same one."""
    (tmp_path / ".a.bin.part").write_bytes(b"x" * 700)
    with flaky_server() as store:
        store.headers = {"ETag": '"1"'}
        store.by_path = lambda asked: (200, Cut(DATA, 700)) if "range" not in asked.headers else None
        file = RemoteFile("a.bin", len(DATA), "etag:1", f"{store.url}/files/a.bin")
        with pytest.raises(NotReachable):
            download(transport, [file], tmp_path)
        assert "range" not in store.asked[0].headers
        assert list(tmp_path.iterdir()) == []
        store.by_path = ranged
        [found] = download(transport, [file], tmp_path)
    assert found.read_bytes() == DATA
