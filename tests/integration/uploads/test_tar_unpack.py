"""Unpacking an uploaded tar into files, in one pass, or leaving nothing of it."""

from __future__ import annotations

import gzip
import io
import tarfile
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from backports import zstd

from apps.namespaces.selectors import namespace_for, quota_of
from apps.uploads import finishing, unpacking
from apps.uploads.file_blocks import manifest_of
from apps.uploads.finishing import upload_finish
from apps.uploads.models import State, Upload
from apps.uploads.selectors import storage_used, stored_files
from tests.integration.sending import begin, complete, send, sha256
from yardmaster.storage.base import StorageFull
from yardmaster.storage.local import LocalStorage

CONTENT = {"b/big.bin": b"0123456789" * 200_000, "train/pos/0_9.txt": b"good", "a.csv": b"x,y\n1,2\n", "empty": b""}
MODES = ["w", "w:gz", "w:bz2", "w:xz", "w:zst"]


def tarred(content, mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode.removesuffix(":zst")) as archive:
        for path, data in content.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return zstd.compress(out.getvalue()) if mode.endswith(":zst") else out.getvalue()


def reviews(count: int) -> dict[str, bytes]:
    """So many short texts by split and class, a multiple of four, laid out as a well-known set of reviews is."""
    return {
        f"reviews/{split}/{label}/{number}_{number % 10}.txt": f"Film {number}: {label}, seen in {split}. ".encode() * 9
        for split in ("train", "test")
        for label in ("neg", "pos")
        for number in range(count // 4)
    }


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def _sent(client, data: bytes, path: str = "data.tar.gz", kind: str = "dataset") -> str:
    upload = begin(client, {path: data}, kind)
    send(client, upload, {path: data})
    return upload["id"]


def listed(client, upload: str) -> Iterator[dict[str, Any]]:
    """The files of the dataset that is made of this upload, page by page."""
    dataset = client.post("/api/v1/datasets/", {"name": "reviews", "upload": upload}).json()
    address = f"/api/v1/dataset-versions/{dataset['latest']['id']}/files/?page_size=200"
    while address:
        page = client.get(address).json()
        yield from page["results"]
        address = page["next"]


def _disk(tmp_path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "objects").rglob("*") if path.is_file())


def _use(ada) -> tuple[int, int]:
    use = storage_used(namespace_for(ada, None))
    return use.used, use.reserved


@pytest.fixture
def by_workers(monkeypatch):
    """Requests leave tars to workers, as they do."""
    monkeypatch.setattr(finishing, "is_quick", unpacking.is_quick)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Unpacked within the request, whose answer says what has become of it."""
    monkeypatch.setattr(finishing, "is_quick", lambda upload, lease: True)


@pytest.mark.parametrize("mode", MODES)
def test_the_files_of_the_tar_take_its_place_whatever_it_is_called(ada, client, tmp_path, mode):
    upload = _sent(client, tarred(CONTENT, mode), "anything")
    answer = complete(client, upload, unpack=True)
    assert (answer.status_code, answer.json()["file_count"]) == (200, 4)
    found = Upload.objects.get()
    assert [(file.path, file.size, file.sha256) for file in stored_files(found)] == [
        (path, len(data), sha256(data)) for path, data in sorted(CONTENT.items())
    ]
    assert {file.path: file.records for file in manifest_of(found.pk)}["a.csv"] == 1
    assert _disk(tmp_path) == ["0_9.txt", "a.csv", "big.bin", "empty"]
    assert _use(ada) == (sum(map(len, CONTENT.values())), 0)


def test_thousands_of_reviews_are_unpacked_and_listed_by_page(client):
    content = reviews(1_200)
    upload = _sent(client, tarred(content), "reviews.tar.gz")
    assert complete(client, upload, unpack=True).json()["file_count"] == 1_200
    assert [one["path"] for one in listed(client, upload)] == sorted(content)


@pytest.mark.slow
@pytest.mark.timeout(600)  # each file is flushed to the disk
@pytest.mark.parametrize("count", [3_000, pytest.param(50_000, marks=pytest.mark.long)])
def test_many_reviews_are_unpacked(client, count):
    content = reviews(count)
    assert len(content) == count
    upload = _sent(client, tarred(content), "reviews.tar.gz")
    complete(client, upload, unpack=True)
    upload_finish(uuid.UUID(upload))
    found = Upload.objects.get()
    assert (found.state, found.file_count) == (State.COMPLETE, count)
    assert [(one["path"], one["size"], one["sha256"]) for one in listed(client, upload)] == [
        (path, len(data), sha256(data)) for path, data in sorted(content.items())
    ]


def _with(kind: bytes, linkname: str = "") -> bytes:
    """A tar with a plain file, and after it an entry of this kind."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("fine"))
        entry = tarfile.TarInfo("evil")
        entry.type, entry.linkname = kind, linkname
        archive.addfile(entry)
    return out.getvalue()


REFUSED = {
    "link_refused": lambda: _with(tarfile.SYMTYPE, "/etc/passwd"),
    "path_escape": lambda: tarred({"fine": b"x", "../../evil": b"x"}),
    "path_conflict": lambda: tarred({"a": b"x", "a/b": b"x"}),
    "path_doubled": lambda: tarred({"caf\u00e9": b"x", "cafe\u0301": b"x"}),
    "archive_damaged": lambda: tarred(CONTENT)[:-300],
    "archive_bomb": lambda: tarred({"fine": b"x", "zeros": b"\0" * (70 << 20)}),
    "archive_empty": lambda: tarred({}),
    "not_a_tar": lambda: gzip.compress(b"a text " * 1000),
    "not_an_archive": lambda: b"just a text",
}


@pytest.mark.parametrize("code", REFUSED)
def test_a_hostile_tar_is_refused_with_a_code_and_leaves_nothing(ada, client, tmp_path, code):
    upload = _sent(client, REFUSED[code]())
    answer = complete(client, upload, unpack=True)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert client.get(f"/api/v1/uploads/{upload}/").json()["state"] == "failed"
    assert _disk(tmp_path) == []
    assert _use(ada) == (0, 0)


def test_a_quota_that_is_reached_half_way_leaves_the_archive_alone(ada, client, tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "_RESERVED_AHEAD", 0)
    content = {f"{number}.bin": bytes([number]) * 300_000 for number in range(10)}
    data = tarred(content)
    quota = quota_of(namespace_for(ada, None))
    quota.storage = 1_000_000
    quota.save()
    upload = _sent(client, data)
    answer = complete(client, upload, unpack=True)
    assert (answer.status_code, answer.json()["code"]) == (409, "quota_full")
    assert (_use(ada), _disk(tmp_path)) == ((0, len(data)), ["archive.zip"])
    quota.storage = None
    quota.save()
    assert complete(client, upload, unpack=True).status_code == 200
    assert (_use(ada), len(_disk(tmp_path))) == ((3_000_000, 0), 10)


def test_a_store_that_is_full_half_way_leaves_the_archive_alone(ada, client, tmp_path, monkeypatch):
    data = tarred(CONTENT)
    upload = _sent(client, data)
    with monkeypatch.context() as patched:
        put = LocalStorage.put
        patched.setattr(LocalStorage, "put", lambda self, key, body: _full(key) or put(self, key, body))
        answer = complete(client, upload, unpack=True)
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_full")
    assert (_use(ada), _disk(tmp_path)) == ((0, len(data)), ["archive.zip"])
    assert complete(client, upload, unpack=True).status_code == 200


def _full(key: str) -> None:
    if key.endswith("empty"):
        raise StorageFull("The object store is full.")


def test_a_worker_that_is_killed_half_way_leaves_nothing_for_the_next(ada, client, tmp_path, monkeypatch):
    upload = uuid.UUID(_sent(client, tarred(CONTENT)))
    monkeypatch.setattr("apps.uploads.services.upload_finish", lambda upload_id, in_request: True)
    complete(client, str(upload), unpack=True)
    with monkeypatch.context() as patched:
        patched.setattr(unpacking, "_replace_files", _killed)
        with pytest.raises(KeyboardInterrupt):
            upload_finish(upload)
    Upload.objects.update(leased_until=None)
    upload_finish(upload)
    assert Upload.objects.get().state == State.COMPLETE
    assert _use(ada) == (sum(map(len, CONTENT.values())), 0)
    assert _disk(tmp_path) == ["0_9.txt", "a.csv", "big.bin", "empty"]


def _killed(*args):
    raise KeyboardInterrupt


@pytest.mark.parametrize("mode", ["w", "w:xz"])
def test_a_tar_is_unpacked_by_a_worker_whatever_it_is_called(client, at_once, by_workers, mode):
    upload = _sent(client, tarred(CONTENT, mode), "a.zip")
    assert complete(client, upload, unpack=True).status_code == 202
    upload_finish(uuid.UUID(upload))
    assert Upload.objects.get().state == State.COMPLETE


@pytest.mark.parametrize(
    ("kind", "linkname", "code"),
    [
        pytest.param(tarfile.LNKTYPE, "fine", "link_refused", id="hard link to a file of the archive"),
        pytest.param(tarfile.LNKTYPE, "/etc/passwd", "link_refused", id="hard link out of it"),
        pytest.param(tarfile.CHRTYPE, "", "special_file_refused", id="character device"),
        pytest.param(tarfile.BLKTYPE, "", "special_file_refused", id="block device"),
        pytest.param(tarfile.FIFOTYPE, "", "special_file_refused", id="FIFO"),
    ],
)
def test_an_entry_that_is_no_plain_file_is_refused_by_name_and_leaves_nothing(
    ada, client, tmp_path, kind, linkname, code
):
    upload = _sent(client, _with(kind, linkname))
    answer = complete(client, upload, unpack=True)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert "evil" in answer.json()["detail"]
    assert _disk(tmp_path) == []
    assert _use(ada) == (0, 0)
