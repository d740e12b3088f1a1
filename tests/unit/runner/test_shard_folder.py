"""The bounded folder of shards: each is fetched once for a machine, kept while it fits, never evicted while open."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from yardmaster_runner.exits import CannotRun
from yardmaster_runner.order import Bundle, RemoteFile
from yardmaster_runner.shard_fetching import ShardFetching
from yardmaster_runner.shard_folder import Busy, NoSpace, ShardFolder

SIZE = 100
FILES = tuple(RemoteFile(f"train/{number}.tfrecord", SIZE, "", "") for number in range(20))
BUNDLE = Bundle("v1", "reviews", FILES, is_streamed=True)


class Store:
    """Writes what is fetched, and counts it."""

    def __init__(self, hold: Callable[[], object] = lambda: None) -> None:
        self.fetched: list[str] = []
        self.at_once = self.most_at_once = 0
        self.hold = hold
        self._lock = threading.Lock()

    def fetch(self, bundle: Bundle, file: RemoteFile, destination: str, incoming: str) -> None:
        with self._lock:
            self.fetched.append(file.path)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self.hold()
        temporary = Path(incoming) / f"{threading.get_ident()}"
        temporary.write_bytes(b"x" * file.size)
        os.replace(temporary, destination)
        with self._lock:
            self.at_once -= 1


def bring(fetching: ShardFetching, file: RemoteFile) -> None:
    one = fetching.now(BUNDLE, file)
    assert one.over.wait(10)
    if one.error is not None:
        raise one.error


def here(folder: ShardFolder) -> list[str]:
    return [file.path for file in FILES if folder.has("v1", file)]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_what_was_fetched_is_kept_and_shared_by_the_tasks_of_a_machine(tmp_path: Path) -> None:
    store = Store()
    tasks = [ShardFetching(ShardFolder(str(tmp_path), 10_000), store.fetch) for _ in range(2)]
    threads = [threading.Thread(target=bring, args=(task, file)) for file in FILES for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(store.fetched) == sorted(file.path for file in FILES)


def test_the_shards_read_the_longest_ago_go_first_and_those_that_are_open_stay(tmp_path: Path) -> None:
    folder = ShardFolder(str(tmp_path), 3 * SIZE)
    fetching = ShardFetching(folder, Store().fetch)
    for file in FILES[:3]:
        bring(fetching, file)
    opened = folder.pin("v1", FILES[0])
    assert opened is not None
    bring(fetching, FILES[3])
    assert here(folder) == [FILES[index].path for index in (0, 2, 3)]
    assert folder.used() == 3 * SIZE
    folder.release(opened)
    bring(fetching, FILES[4])
    assert here(folder) == [FILES[index].path for index in (0, 3, 4)]  # just released: the newest
    assert folder.pin("v1", FILES[1]) is None


def test_several_are_fetched_at_a_time(tmp_path: Path) -> None:
    gate = threading.Event()
    store = Store(lambda: gate.wait(10))
    ShardFetching(ShardFolder(str(tmp_path), 10_000), store.fetch).ahead(BUNDLE, list(FILES[:12]))
    until(lambda: store.at_once == 8)
    gate.set()
    until(lambda: len(store.fetched) == 12)
    assert store.most_at_once == 8


def test_one_that_a_reader_waits_for_comes_first(tmp_path: Path) -> None:
    gate = threading.Event()
    store = Store(lambda: gate.wait(10))
    fetching = ShardFetching(ShardFolder(str(tmp_path), 10_000), store.fetch, threads=1)
    fetching.ahead(BUNDLE, list(FILES[:4]))
    until(lambda: store.at_once == 1)
    fetching.now(BUNDLE, FILES[3])
    gate.set()
    until(lambda: len(store.fetched) == 4)
    assert store.fetched == [FILES[index].path for index in (0, 3, 1, 2)]


def test_shards_fetched_ahead_give_way_to_a_reader_that_waits_but_not_to_others_fetched_ahead(tmp_path: Path) -> None:
    folder = ShardFolder(str(tmp_path), 2 * SIZE)
    fetching = ShardFetching(folder, Store().fetch)

    def are_here() -> bool:
        fetching.ahead(BUNDLE, list(FILES[:2]))  # as readers ask again: one is passed over while both come at once
        return len(here(folder)) == 2

    until(are_here)
    with pytest.raises(NoSpace):
        folder.reserve("v1", FILES[2], is_urgent=False)
    bring(fetching, FILES[3])
    assert FILES[3].path in here(folder)
    assert folder.used() == 2 * SIZE


def test_a_bound_below_one_shard_is_an_error_that_names_the_setting(tmp_path: Path) -> None:
    fetching = ShardFetching(ShardFolder(str(tmp_path), SIZE - 1), Store().fetch)
    with pytest.raises(CannotRun, match=r"train/0.tfrecord has 100 bytes.*YARDMASTER_STREAM_CACHE"):
        bring(fetching, FILES[0])


def test_a_folder_that_is_full_of_open_shards_is_an_error_once_waiting_has_not_helped(tmp_path: Path) -> None:
    folder = ShardFolder(str(tmp_path), SIZE)
    fetching = ShardFetching(folder, Store().fetch, space_patience=0.1)
    bring(fetching, FILES[0])
    opened = folder.pin("v1", FILES[0])
    assert opened is not None
    with pytest.raises(CannotRun, match="full of shards that readers have open"):
        bring(fetching, FILES[1])
    folder.release(opened)
    bring(fetching, FILES[1])


def test_one_shard_is_fetched_by_one_task_at_a_time(tmp_path: Path) -> None:
    folder, other = ShardFolder(str(tmp_path), 1000), ShardFolder(str(tmp_path), 1000)
    reservation = folder.reserve("v1", FILES[0], is_urgent=True)
    assert reservation is not None
    assert other.used() == SIZE  # reserved
    with pytest.raises(Busy):
        other.reserve("v1", FILES[0], is_urgent=True)
    reservation.end(is_ahead=False)
    assert other.used() == 0


def test_what_a_killed_task_left_is_cleaned_up(tmp_path: Path) -> None:
    (tmp_path / "v1" / "train").mkdir(parents=True)
    (tmp_path / "v1" / "train" / "0.tfrecord.fetching").write_bytes(b"x" * SIZE)
    (tmp_path / ".incoming").mkdir()
    old = tmp_path / ".incoming" / "1-1"
    old.write_bytes(b"x")
    os.utime(old, (1, 1))
    folder = ShardFolder(str(tmp_path), 1000)
    assert folder.used() == 0
    assert not old.exists()


def test_a_shard_of_another_size_is_fetched_again(tmp_path: Path) -> None:
    folder, store = ShardFolder(str(tmp_path), 1000), Store()
    path = tmp_path / "v1" / "train" / "0.tfrecord"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"short")
    assert folder.pin("v1", FILES[0]) is None
    bring(ShardFetching(folder, store.fetch), FILES[0])
    assert path.stat().st_size == SIZE
