"""The store in Apache Ignite when nodes end, writers die and others write at the same time: an object is whole or not
there, and nothing stays behind for good."""

from __future__ import annotations

import hashlib
import io
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.real.ignite import Ignite, ignite
from tests.real.ignite_store import emptied, ignite_node, pieces_held, rows_held
from yardmaster.errors import Unavailable
from yardmaster.storage.base import ChecksumMismatch, ObjectMissing, PartsRefused
from yardmaster.storage.ignite import IgniteStorage
from yardmaster.storage.ignite_pieces import PIECE
from yardmaster.storage.signing import PartGrant

__all__ = ["ignite_node"]
pytestmark = [pytest.mark.ignite, pytest.mark.slow, pytest.mark.timeout(600)]

PART = 5 << 20
AT_ONCE = timedelta(seconds=-5)


def _made(server: Ignite, backups: int = 0) -> IgniteStorage:
    return IgniteStorage(base_url="http://portal", signing_key="k" * 32, **server.store_options(backups=backups))


@pytest.fixture
def store(ignite_node: Ignite) -> Iterator[IgniteStorage]:
    emptied(ignite_node)
    made = _made(ignite_node)
    yield made
    made.close()


def _grant(key: str, upload_id: str, number: int, data: bytes) -> PartGrant:
    return PartGrant(key, upload_id, number, len(data), hashlib.sha256(data).hexdigest())


def _content(store: IgniteStorage, key: str, start: int = 0, length: int | None = None) -> bytes:
    with store.open_range(key, start, length) as stream:
        return stream.read()


def _held(server: Ignite) -> tuple[int, ...]:
    return pieces_held(server), *(rows_held(server, table) for table in ("OBJECTS", "UPLOADS", "LOOSE"))


class _Breaks(io.RawIOBase):
    """Three pieces, then the sender is gone."""

    def __init__(self) -> None:
        self.left = 3

    def read(self, size: int = -1, /) -> bytes:
        if not self.left:
            raise ConnectionResetError("the sender is gone")
        self.left -= 1
        return b"x" * PIECE


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE, 9 * PIECE + 7])
def test_bytes_of_every_length_come_back_in_every_range(store, ignite_node, size):
    data = bytes(hashlib.shake_256(b"seed").digest(size))
    store.put("k", io.BytesIO(data))
    assert _content(store, "k") == data
    for start, length in ((0, 1), (PIECE - 1, 2), (size // 2, PIECE + 3), (max(0, size - 1), None), (size + 5, 4)):
        expected = data[start:] if length is None else data[start : start + length]
        assert _content(store, "k", start, length) == expected
    store.delete("k")
    assert _held(ignite_node) == (0, 0, 0, 0)


def test_a_sender_that_breaks_off_leaves_nothing(store, ignite_node):
    with pytest.raises(ConnectionResetError):
        store.put("k", _Breaks())
    upload_id = store.multipart_begin("k", PART)
    with pytest.raises(ConnectionResetError):
        store.part_write(_grant("k", upload_id, 1, b"x" * PART), _Breaks())
    with pytest.raises(ChecksumMismatch):
        store.part_write(PartGrant("k", upload_id, 1, 3, "0" * 64), io.BytesIO(b"abc"))
    with pytest.raises(PartsRefused):
        store.part_write(_grant("k", upload_id, 1, b"x" * (PART + 1)), io.BytesIO(b"x" * (PART + 1)))
    with pytest.raises(ObjectMissing):
        store.stat("k")
    store.multipart_abort("k", upload_id)
    assert _held(ignite_node) == (0, 0, 0, 0)


def test_what_a_killed_writer_left_is_removed_by_the_sweep_and_what_is_used_stays(store, ignite_node, monkeypatch):
    store.put("stays", b"a" * (2 * PIECE))
    upload_id = store.multipart_begin("open", PART)
    store.part_write(_grant("open", upload_id, 1, b"b" * PIECE), io.BytesIO(b"b" * PIECE))
    with monkeypatch.context() as killed:  # nothing runs behind the fault
        killed.setattr(store._uploads, "loose_end_of", lambda row_id: None)
        killed.setattr(store._uploads, "loose_end", lambda row: None)
        with pytest.raises(ConnectionResetError):
            store.put("k", _Breaks())
        with pytest.raises(ConnectionResetError):
            store.part_write(_grant("open", upload_id, 2, b"x" * PART), _Breaks())
        killed.setattr(store._rows, "loose_drop", lambda row_id: None)
        store.put("written", b"c" * PIECE)
        killed.setattr(store._pieces, "remove", lambda extents: None)
        store.put("stays", b"d" * PIECE)
        store.delete("written")
    assert rows_held(ignite_node, "LOOSE") >= 4
    store.clean_up(timedelta(hours=1))
    assert rows_held(ignite_node, "LOOSE") >= 4
    store.clean_up(AT_ONCE)
    assert _held(ignite_node) == (2, 1, 1, 0)
    assert _content(store, "stays") == b"d" * PIECE
    assert store.multipart_complete("open", upload_id, store.parts("open", upload_id)).size == PIECE


def test_an_end_that_was_interrupted_is_repeated_or_taken_back(store, ignite_node, monkeypatch):
    for key in ("again", "given-up"):
        upload_id = store.multipart_begin(key, PART)
        store.part_write(_grant(key, upload_id, 1, b"abc"), io.BytesIO(b"abc"))
        parts = store.parts(key, upload_id)
        with monkeypatch.context() as killed:
            killed.setattr(store._uploads, "_placed", _fail)
            with pytest.raises(Unavailable):
                store.multipart_complete(key, upload_id, parts)
        with pytest.raises(ObjectMissing):
            store.stat(key)
        assert store.parts(key, upload_id) == parts
        if key == "again":
            assert store.multipart_complete(key, upload_id, parts).size == 3
        else:
            store.clean_up(AT_ONCE)
    assert _held(ignite_node) == (1, 1, 0, 0)
    store.delete_prefix("again")
    assert _content(store, "again") == b"abc"


def _fail(row: object) -> None:
    raise Unavailable("killed here")


def test_writers_of_one_key_leave_one_whole_object(store, ignite_node):
    def write(number: int) -> None:
        store.put("k", bytes([number]) * (2 * PIECE + number))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(12)))
    found = _content(store, "k")
    assert found == bytes([found[0]]) * (2 * PIECE + found[0])
    store.clean_up(AT_ONCE)  # who came too late may have noted as loose what another has released
    assert _held(ignite_node) == (3 if found[0] else 2, 1, 0, 0)


def test_parts_that_arrive_at_once_are_all_counted(store, ignite_node):
    upload_id = store.multipart_begin("k", PART)
    data = [bytes([number]) * (PART if number < 15 else 7) for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda one: store.part_write(_grant("k", upload_id, one + 1, data[one]), io.BytesIO(data[one])),
                range(16),
            )
        )
    parts = store.parts("k", upload_id)
    assert [one.number for one in parts] == list(range(1, 17))
    store.multipart_complete("k", upload_id, parts)
    assert hashlib.sha256(_content(store, "k")).digest() == hashlib.sha256(b"".join(data)).digest()
    store.delete("k")
    assert _held(ignite_node) == (0, 0, 0, 0)


def test_a_reader_of_an_object_that_is_replaced_gets_no_mixture(store):
    store.put("k", b"a" * (12 * PIECE))
    stream = store.open_range("k")
    assert set(stream.read(10)) == set(b"a")
    store.put("k", b"b" * (12 * PIECE))
    found = []
    with pytest.raises(Unavailable), stream:
        found.extend(set(one) for one in iter(lambda: stream.read(PIECE), b""))
    assert all(one == set(b"a") for one in found)


def test_without_a_server_it_is_away_and_names_it():
    away = IgniteStorage("127.0.0.1:9", base_url="http://portal", signing_key="k" * 32)
    with pytest.raises(Unavailable) as caught:
        away.stat("k")
    assert caught.value.code == "ignite_unavailable"
    assert "127.0.0.1:9" in caught.value.message
    assert "YARDMASTER_IGNITE_STORE" in caught.value.remedy


def test_a_node_that_is_killed_while_it_writes_shows_no_half_object_and_loses_none(tmp_path):
    with ignite(tmp_path / "cluster", 2) as server:
        store = _made(server, backups=1)
        store.put("before", b"a" * (6 * PIECE))
        begun, done = threading.Event(), []

        class Slow(io.RawIOBase):
            left = 40

            def read(self, size: int = -1, /) -> bytes:
                self.left -= 1
                if self.left == 30:
                    begun.set()
                time.sleep(0.02)
                return b"b" * PIECE if self.left >= 0 else b""

        def write() -> None:
            try:
                done.append(store.put("during", Slow()).size)
            except Unavailable:
                done.append(None)

        writer = threading.Thread(target=write)
        writer.start()
        assert begun.wait(60)
        with pytest.raises(ObjectMissing):
            store.stat("during")
        server.kill(0)
        writer.join(120)
        assert done
        assert _content(store, "before") == b"a" * (6 * PIECE)
        if done[0] is None:
            with pytest.raises(ObjectMissing):
                store.stat("during")
        else:
            assert _content(store, "during") == b"b" * (40 * PIECE)
        again = _made(server, backups=1)  # as a portal that starts again
        assert again.stat("before").size == 6 * PIECE
        again.put("after", b"c" * PIECE)
        assert _content(store, "after") == b"c" * PIECE
        again.close()
        store.close()
