"""Unpacking one uploaded zip into files, or refusing it and leaving nothing."""

from __future__ import annotations

import io
import stat
import uuid
import zipfile

import pytest

from apps.namespaces.selectors import namespace_for, quota_of
from apps.uploads import services, unpacking
from apps.uploads.file_blocks import manifest_of
from apps.uploads.finishing import upload_finish
from apps.uploads.models import State, Upload
from apps.uploads.selectors import storage_used, stored_files
from tests.integration.sending import begin, complete, send, sha256, zipped

CONTENT = {
    "train/a.csv": b"x,y\n1,2\n",
    "upload.zip": b"a file of this name",
    "b": b"",
    "big.bin": b"0123456789" * 200_000,
}


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def _sent(client, data: bytes, path: str = "upload.zip", kind: str = "dataset") -> str:
    upload = begin(client, {path: data}, kind)
    send(client, upload, {path: data})
    return upload["id"]


def _disk(tmp_path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "objects").rglob("*") if path.is_file())


def _use(ada) -> tuple[int, int]:
    use = storage_used(namespace_for(ada, None))
    return use.used, use.reserved


def test_the_files_of_the_zip_take_its_place(ada, client, tmp_path):
    upload = _sent(client, zipped(CONTENT))
    answer = complete(client, upload, unpack=True)
    assert (answer.status_code, answer.json()["file_count"]) == (200, 4)
    found = Upload.objects.get()
    assert [(file.path, file.size, file.sha256) for file in stored_files(found)] == [
        (path, len(data), sha256(data)) for path, data in sorted(CONTENT.items())
    ]
    assert {file.path: file.records for file in manifest_of(found.pk)}["train/a.csv"] == 1
    assert _disk(tmp_path) == ["a.csv", "b", "big.bin", "upload.zip"]
    assert _use(ada) == (sum(map(len, CONTENT.values())), 0)


def test_without_unpack_a_zip_is_a_file(client):
    upload = _sent(client, zipped(CONTENT))
    assert complete(client, upload).status_code == 200
    assert [file.path for file in stored_files(Upload.objects.get())] == ["upload.zip"]


def test_only_one_file_can_be_unpacked(client):
    content = {"a.zip": zipped(CONTENT), "b": b""}
    upload = begin(client, content)
    send(client, upload, content)
    answer = complete(client, upload["id"], unpack=True)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "unpack")


def _link() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("fine", b"x")
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return out.getvalue()


REFUSED = {
    "zip_bomb": lambda: zipped({"zeros": b"\0" * (70 << 20)}),
    "path_escape": lambda: zipped({"fine": b"x", "../../evil": b"x"}),
    "link_refused": _link,
    "not_a_zip": lambda: b"this is no zip",
    "zip_empty": lambda: zipped({}),
    "path_conflict": lambda: zipped({"a": b"", "a/b": b""}),
}


@pytest.mark.parametrize("code", REFUSED)
def test_a_hostile_zip_is_refused_with_a_code_and_leaves_nothing(ada, client, tmp_path, code):
    upload = _sent(client, REFUSED[code]())
    answer = complete(client, upload, unpack=True)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    state = client.get(f"/api/v1/uploads/{upload}/").json()
    assert (state["state"], state["problem"]["code"]) == ("failed", code)
    assert _disk(tmp_path) == []
    assert _use(ada) == (0, 0)
    assert complete(client, upload, unpack=True).json()["code"] == code
    assert client.delete(f"/api/v1/uploads/{upload}/").status_code == 204


def test_content_that_breaks_while_it_is_unpacked_leaves_nothing(ada, client, tmp_path):
    data = bytearray(zipped({"a": b"fine", "b": b"hello world" * 1000}))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        header = archive.getinfo("b").header_offset
    data[header + 30 + len("b") + 10] ^= 0xFF
    upload = _sent(client, bytes(data))
    assert complete(client, upload, unpack=True).json()["code"] == "zip_damaged"
    assert (_disk(tmp_path), _use(ada)) == ([], (0, 0))


def test_what_the_zip_holds_is_reserved_before_it_is_written(ada, client, tmp_path):
    data = zipped({"big": b"0123456789" * 100_000})
    quota = quota_of(namespace_for(ada, None))
    quota.storage = 500_000
    quota.save()
    upload = _sent(client, data)
    answer = complete(client, upload, unpack=True)
    assert (answer.status_code, answer.json()["code"]) == (409, "quota_full")
    assert _use(ada) == (0, len(data))
    assert _disk(tmp_path) == ["archive.zip"]
    quota.storage = None
    quota.save()
    assert complete(client, upload, unpack=True).status_code == 200
    assert _use(ada) == (1_000_000, 0)


def test_a_zip_whose_unpacking_was_cut_off_is_unpacked_anew(ada, client, monkeypatch, tmp_path):
    upload = uuid.UUID(_sent(client, zipped(CONTENT)))
    monkeypatch.setattr(services, "upload_finish", lambda upload_id, in_request: True)
    complete(client, str(upload), unpack=True)
    with monkeypatch.context() as patched:
        patched.setattr(unpacking, "_replace_files", _killed)
        with pytest.raises(KeyboardInterrupt):
            upload_finish(upload)
    Upload.objects.update(leased_until=None)
    upload_finish(upload)
    assert Upload.objects.get().state == State.COMPLETE
    assert _use(ada) == (sum(map(len, CONTENT.values())), 0)
    assert _disk(tmp_path) == ["a.csv", "b", "big.bin", "upload.zip"]


def _killed(*args):
    raise KeyboardInterrupt


def test_a_zip_of_thousands_of_files_is_unpacked(client):
    content = {f"images/{number:04}.png": bytes([number % 256]) * 50 for number in range(1500)}
    upload = _sent(client, zipped(content))
    assert complete(client, upload, unpack=True).status_code == 202
    assert upload_finish(uuid.UUID(upload))
    assert client.get(f"/api/v1/uploads/{upload}/?files=0").json()["file_count"] == 1500
    assert len(list(stored_files(Upload.objects.get()))) == 1500


@pytest.mark.parametrize(
    ("content", "limit"), [({str(number): b"" for number in range(501)}, 64 << 20), (CONTENT, 2_000_000)]
)
def test_a_small_zip_that_holds_much_is_left_to_a_worker(ada, client, tmp_path, monkeypatch, content, limit):
    monkeypatch.setattr(unpacking, "INLINE_UNPACKED_BYTES", limit)
    upload = _sent(client, zipped(content))
    answer = complete(client, upload, unpack=True)
    assert (answer.status_code, answer.json()["state"], _disk(tmp_path)) == (202, "completing", ["upload.zip"])
    assert upload_finish(uuid.UUID(upload))
    assert (Upload.objects.get().state, len(_disk(tmp_path))) == (State.COMPLETE, len(content))
