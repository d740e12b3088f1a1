"""What a folder does that other stores do not: links, full disks, processes that die half way."""

from __future__ import annotations

import hashlib
import io
import os
import resource
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from yardmaster.errors import Unavailable
from yardmaster.storage.base import Audience, KeyRefused, ObjectMissing, PartsRefused, StorageFull, UploadMissing
from yardmaster.storage.local import LocalStorage
from yardmaster.storage.signing import PartGrant

SIZE = 1000


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(root) -> LocalStorage:
    return LocalStorage(root, base_url="http://portal", signing_key="k" * 40)


def _files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def _send(store: LocalStorage, upload_id: str, part: int, data: bytes, size: int | None = None) -> None:
    grant = PartGrant("k", upload_id, part, len(data) if size is None else size, hashlib.sha256(data).hexdigest())
    store.part_write(grant, io.BytesIO(data))


@pytest.fixture
def small_files():
    """A disk on which no file can be larger than 64 KiB: the system itself refuses, as a full one does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_told_as_such_and_leaves_nothing_behind(store, root, small_files):
    with pytest.raises(StorageFull) as full:
        store.put("a/b", io.BytesIO(b"x" * (1 << 20)))
    assert full.value.code == "storage_full"
    assert full.value.remedy
    assert _files(root) == []


def test_a_full_disk_does_not_count_the_part_nor_end_the_upload(store, small_files):
    upload_id = store.multipart_begin("k", 1 << 20)
    with pytest.raises(StorageFull):
        _send(store, upload_id, 1, b"x" * (1 << 20))
    assert store.parts("k", upload_id) == []
    _send(store, upload_id, 1, b"fits")
    assert store.multipart_complete("k", upload_id, store.parts("k", upload_id)).size == 4


def test_a_really_full_file_system_is_told_as_such(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(small)], capture_output=True).returncode:
        pytest.skip("mounting a small file system takes root")
    try:
        store = LocalStorage(small / "store", base_url="http://portal", signing_key="k" * 40)
        store.put("before", b"b")
        with pytest.raises(StorageFull):
            store.put("a/b", io.BytesIO(b"x" * (1 << 20)))
        assert _files(small) == ["store/objects/before"]
        store.put("after", b"a")
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_link_within_the_store_leads_nowhere(store, root, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").write_text("secret")
    store.put("d/x", b"x")
    (root / "objects" / "d" / "link").symlink_to(secret)
    (root / "objects" / "file").symlink_to(secret / "file")
    for key in ("d/link/file", "d/link/new", "file"):
        for attempt in (store.stat, store.open_range, store.delete, store.delete_prefix):
            with pytest.raises(KeyRefused):
                attempt(key)
        with pytest.raises(KeyRefused):
            store.put(key, b"overwritten")
    assert [found.key for found in store.list_prefix("d")] == ["d/x"]
    store.delete_prefix("d")
    assert (secret / "file").read_text() == "secret"


def test_a_store_whose_root_is_reached_through_a_link_works(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = LocalStorage(tmp_path / "link", base_url="http://portal", signing_key="k" * 40)
    assert store.put("a", b"1").size == 1


def test_a_pipe_in_the_store_does_not_hang_anybody(store, root):
    (root / "objects").mkdir(parents=True)
    os.mkfifo(root / "objects" / "pipe")
    with pytest.raises(Exception, match="no object"):
        store.stat("pipe")


def test_an_object_cannot_be_a_folder_as_well(store):
    store.put("a", b"file")
    with pytest.raises(KeyRefused):
        store.put("a/b", b"below")
    store.put("c/d", b"below")
    with pytest.raises(KeyRefused):
        store.put("c", b"file")
    assert store.stat("a").size == 4


def test_deleting_leaves_no_empty_folders(store, root):
    store.put("a/b/c/d", b"x")
    store.put("a/e", b"x")
    store.delete("a/b/c/d")
    assert not (root / "objects/a/b").exists()
    store.delete_prefix("a")
    assert list((root / "objects").iterdir()) == []


def test_putting_and_deleting_side_by_side_never_fails(store):
    def work(number: int) -> None:
        for turn in range(50):
            store.put(f"shared/{number}/{turn}", b"x")
            store.delete(f"shared/{number}/{turn}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_a_folder_that_goes_while_it_is_looked_at_is_made_again(store, root, monkeypatch):
    made, mkdir = [], os.mkdir

    def and_gone(path, *mode):  # `mkdir` says "it exists", and somebody prunes it before the caller looks
        if str(path).endswith("shared") and not made:
            made.append(path)
            raise FileExistsError(17, "File exists", str(path))
        mkdir(path, *mode)

    monkeypatch.setattr(os, "mkdir", and_gone)
    store.put("shared/1", b"x")
    assert made
    assert _files(root) == ["objects/shared/1"]


def test_an_object_that_is_deleted_before_its_name_is_durable_is_just_gone(store, root, monkeypatch):
    replace = os.replace

    def and_deleted(source, target):
        replace(source, target)
        store.delete("shared/1")

    monkeypatch.setattr(os, "replace", and_deleted)
    with pytest.raises(ObjectMissing):
        store.put("shared/1", b"x")
    assert _files(root) == []


# --- Parts


@pytest.mark.parametrize("number", [0, -1, 10_001])
def test_parts_are_numbered_from_one_to_ten_thousand(store, number):
    upload_id = store.multipart_begin("k", SIZE)
    with pytest.raises(PartsRefused):
        _send(store, upload_id, number, b"x")


@pytest.mark.parametrize(("data", "size"), [(b"short", 6), (b"longer", 5), (b"", 1), (b"x", 0)])
def test_a_part_of_another_size_than_granted_does_not_count(store, data, size):
    upload_id = store.multipart_begin("k", SIZE)
    with pytest.raises(PartsRefused):
        _send(store, upload_id, 1, data, size)
    assert store.parts("k", upload_id) == []


def test_a_part_larger_than_the_part_size_is_refused(store):
    upload_id = store.multipart_begin("k", 10)
    with pytest.raises(PartsRefused):
        _send(store, upload_id, 1, b"x" * 11)


def test_a_short_part_in_the_middle_is_refused(store):
    upload_id = store.multipart_begin("k", 10)
    _send(store, upload_id, 1, b"x" * 9)
    _send(store, upload_id, 2, b"x" * 10)
    with pytest.raises(PartsRefused):
        store.multipart_complete("k", upload_id, store.parts("k", upload_id))


class DiesHalfWay(io.BytesIO):
    """A sender that is cut off."""

    def read(self, size=-1, /):
        if self.tell():
            raise ConnectionResetError("the sender is gone")
        return super().read(4)


def test_a_part_that_was_cut_off_does_not_count_and_can_be_sent_again(store):
    upload_id = store.multipart_begin("k", SIZE)
    with pytest.raises(Unavailable):
        store.part_write(PartGrant("k", upload_id, 1, 8, "0" * 64), DiesHalfWay(b"abcdefgh"))
    assert store.parts("k", upload_id) == []
    _send(store, upload_id, 1, b"12345678")
    store.multipart_complete("k", upload_id, store.parts("k", upload_id))
    with store.open_range("k") as stream:
        assert stream.read() == b"12345678"


class WritesLater(io.BytesIO):
    """A sender that holds its part open while `meanwhile` runs."""

    def __init__(self, data, meanwhile):
        super().__init__(data)
        self.meanwhile = meanwhile

    def read(self, size=-1, /):
        self.meanwhile()
        return super().read(size)


def test_an_upload_is_not_completed_under_a_part_that_is_being_written(store):
    upload_id = store.multipart_begin("k", SIZE)
    _send(store, upload_id, 1, b"good")
    parts = store.parts("k", upload_id)
    outcomes = []

    def meanwhile():
        try:
            store.multipart_complete("k", upload_id, parts)
        except Unavailable as error:
            outcomes.append(error)

    store.part_write(
        PartGrant("k", upload_id, 1, 4, hashlib.sha256(b"evil").hexdigest()), WritesLater(b"evil", meanwhile)
    )
    assert outcomes
    with pytest.raises(PartsRefused):
        store.multipart_complete("k", upload_id, parts)


def test_a_part_of_an_upload_that_ended_meanwhile_changes_no_object(store):
    upload_id = store.multipart_begin("k", SIZE)
    _send(store, upload_id, 1, b"good")
    store.multipart_complete("k", upload_id, store.parts("k", upload_id))
    with pytest.raises(UploadMissing):
        _send(store, upload_id, 1, b"evil")
    with store.open_range("k") as stream:
        assert stream.read() == b"good"


def test_completing_goes_on_where_a_dead_process_stopped(store, root):
    """Killed between moving the data and removing the upload's folder."""
    upload_id = store.multipart_begin("k", SIZE)
    _send(store, upload_id, 1, b"data")
    parts = store.parts("k", upload_id)
    (root / "objects").mkdir()
    os.replace(root / "parts" / upload_id / "data", root / "objects" / "k")
    assert store.multipart_complete("k", upload_id, parts).size == 4
    assert list((root / "parts").iterdir()) == []


def test_completing_does_not_take_an_older_object_for_the_uploads(store, root):
    store.put("k", b"older, of another size")
    upload_id = store.multipart_begin("k", SIZE)
    _send(store, upload_id, 1, b"data")
    (root / "parts" / upload_id / "data").unlink()
    with pytest.raises(PartsRefused):
        store.multipart_complete("k", upload_id, store.parts("k", upload_id))


def test_completing_a_large_upload_costs_no_second_copy(store, root):
    """Completing is a rename: the object is the very file that the parts were written to."""
    upload_id = store.multipart_begin("k", 1 << 20)
    for number in range(1, 5):
        _send(store, upload_id, number, bytes([number]) * (1 << 20))
    inode = (root / "parts" / upload_id / "data").stat().st_ino
    store.multipart_complete("k", upload_id, store.parts("k", upload_id))
    assert (root / "objects" / "k").stat().st_ino == inode
    assert _files(root) == ["objects/k"]


def test_an_address_leads_to_the_portal_as_its_user_sees_it(store, root):
    quarter = timedelta(minutes=15)
    assert store.read_url("k", quarter).startswith("http://portal/storage/objects/k?")
    inside = LocalStorage(root, base_url="http://portal", task_url="http://inside:1/", signing_key="k" * 40)
    tasks = Audience.TASKS
    assert inside.read_url("k", quarter, audience=tasks).startswith("http://inside:1/storage/objects/k?")
    signed = inside.part_url("k", "u", 1, size=1, sha256="0" * 64, expires=quarter, audience=tasks)
    assert signed.url.startswith("http://inside:1/storage/parts/")


class Meanwhile:
    """A body during which something happens."""

    def __init__(self, data: bytes, happens: Callable[[], object]) -> None:
        self._pieces = [data, b""]
        self._happens = happens

    def read(self, size: int = -1, /) -> bytes:
        if len(self._pieces) == 2:
            self._happens()
        return self._pieces.pop(0)


def test_a_part_that_is_being_written_while_its_upload_is_aborted_is_refused_and_leaves_nothing(store, tmp_path):
    upload = store.multipart_begin("k", 100)
    body = Meanwhile(b"x" * 100, lambda: store.multipart_abort("k", upload))
    with pytest.raises(UploadMissing):
        store.part_write(PartGrant("k", upload, 1, 100, hashlib.sha256(b"x" * 100).hexdigest()), body)
    with pytest.raises(UploadMissing):
        store.part_write(PartGrant("k", upload, 2, 1, hashlib.sha256(b"x").hexdigest()), io.BytesIO(b"x"))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_calls_that_were_cut_off_left_is_cleaned_up_once_it_is_old(store, tmp_path):
    store.put("k", b"kept")
    upload, empty = store.multipart_begin("l", 3), store.multipart_begin("l", 3)
    grant = PartGrant("l", upload, 1, 3, hashlib.sha256(b"abc").hexdigest())
    store.part_write(grant, io.BytesIO(b"abc"))
    root = next(path for path in tmp_path.rglob("parts")).parent
    for left in ("new/x", "old/y/z", "parts/aborted-1/data"):
        (root / left).parent.mkdir(parents=True, exist_ok=True)
        (root / left).write_bytes(b"left")
    store.clean_up(timedelta(hours=1))
    assert (root / "new/x").exists()
    assert store.parts("l", empty) == []
    store.clean_up(timedelta(seconds=-1))
    assert not any((root / left).exists() for left in ("new/x", "old/y", "parts/aborted-1"))
    with pytest.raises(UploadMissing):  # its id is lost where the process died that began it
        store.parts("l", empty)
    assert sorted(path.name for path in (root / "parts").iterdir()) == [upload]
    assert [part.number for part in store.parts("l", upload)] == [1]
    assert store.stat("k").size == 4
