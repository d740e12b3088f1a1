"""The socket between a script and its runner: what is asked, what is refused, and what stays while it is read."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yardmaster_runner.answers import PortalAway, PortalRejected
from yardmaster_runner.data.inputs import DataError, DataUnavailable, Input
from yardmaster_runner.data.passes import MOST_PASSES, Connection, Passes, fetched, listed
from yardmaster_runner.data_service import DataService
from yardmaster_runner.exits import PORTAL_UNREACHABLE, STAGE_IN_FAILED, CannotRun
from yardmaster_runner.order import Bundle, RemoteFile
from yardmaster_runner.shard_fetching import ShardFetching
from yardmaster_runner.shard_folder import NoSpace, ShardFolder

SHARDS = tuple(RemoteFile(f"{number}.tfrecord", 10, "", "") for number in range(5))
BUNDLE = Bundle("v1", "reviews", (RemoteFile("dataset.json", 2, "", ""), *SHARDS), is_streamed=True)


class Scene:
    def __init__(self, top: Path, limit: int = 1000) -> None:
        self.error: Exception | None = None
        self.folder = ShardFolder(str(top / "shards"), limit)
        self.service = DataService(str(top), [BUNDLE], self.folder, ShardFetching(self.folder, self.fetch))
        self.input = Input("reviews", "", str(top), is_streamed=True, socket=self.service.address)

    def fetch(self, bundle: Bundle, file: RemoteFile, destination: str, incoming: str) -> None:
        if self.error is not None:
            raise self.error
        Path(destination).write_bytes(b"x" * file.size)

    def passes(self, shuffle: bool = False) -> Passes:
        return Passes(self.input, [file.path for file in SHARDS], shuffle=shuffle, seed=1)

    def raw(self, *lines: bytes) -> list[dict]:
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(self.service.address)
            end.settimeout(10)
            with end.makefile("rwb") as stream:
                answers = []
                for line in lines:
                    stream.write(line + b"\n")
                    stream.flush()
                    answers.append(json.loads(stream.readline()))
                return answers


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    one = Scene(tmp_path)
    yield one
    one.service.close()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_what_tasks_agree_on_is_passed_on_and_a_portal_that_is_away_is_waited_for(tmp_path: Path) -> None:
    answers: list[object] = ["0,1", PortalAway("away"), PortalRejected(409, "over", {})]

    def agree(name: str, value: str) -> str:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        assert (name, value) == ("ab", "1,0")
        return str(found)

    folder = ShardFolder(str(tmp_path / "shards"), 1000)
    service = DataService(str(tmp_path), [], folder, ShardFetching(folder, lambda *_: None), agree)
    connection = Connection(Input("", "", "", socket=service.address))
    ask = {"op": "agree", "name": "ab", "value": "1,0"}
    assert connection.ask(**ask) == {"value": "0,1"}
    assert connection.ask(**ask) == {"wait": True}
    with pytest.raises(DataError, match=r"the portal refuses: .*over"):
        connection.ask(**ask)
    connection.close()
    service.close()


def test_shards_are_listed_and_fetched(scene: Scene) -> None:
    assert listed(scene.input) == [(file.path, 10) for file in SHARDS]
    connection, path = fetched(scene.input, "3.tfrecord")
    assert os.path.getsize(path) == 10
    connection.close()
    assert oct(os.stat(scene.service.address).st_mode)[-3:] == "600"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "Expecting"),
        (b"[]", "a request is an object"),
        (b'{"op": "list", "input": "other"}', "no input is called 'other'"),
        (b'{"op": "read", "input": "reviews", "paths": "x"}', "no list of texts"),
        (b'{"op": "read", "input": "reviews", "paths": ["../token"]}', "../token is not in the dataset version"),
        (b'{"op": "get", "shard": 0}', "0 were asked for"),
        (b'{"op": "get", "shard": "0"}', "0 were asked for"),
        (b'{"op": "dance", "shard": 0}', "0 were asked for"),
        (b'{"op": "\\ud800"}', "0 were asked for"),
        (b"[" * 100_000, ""),
    ],
)
def test_what_cannot_be_is_answered_with_an_error_and_the_next_request_works(
    scene: Scene, line: bytes, said: str
) -> None:
    refused, fine = scene.raw(line, b'{"op": "list", "input": "reviews"}')
    assert said in refused["error"]
    assert len(fine["files"]) == 5


def test_a_shard_stays_while_it_is_read_and_goes_with_its_reader(scene: Scene) -> None:
    passes = scene.passes()
    going = passes.one()
    number, shard = next(going)
    path = passes.get(number, shard)
    scene.folder.limit = 10
    with pytest.raises(CannotRun):
        scene.folder.reserve("v1", RemoteFile("big.tfrecord", 11, "", ""), is_urgent=True)
    assert os.path.exists(path)
    assert passes.open_shards() == [path]
    del going  # the iteration is given up: the connection ends, and the shard may go

    def goes() -> bool:
        try:
            reservation = scene.folder.reserve("v1", RemoteFile("new.tfrecord", 10, "", ""), is_urgent=True)
        except NoSpace:
            return False
        assert reservation is not None
        reservation.end(is_ahead=False)
        return True

    until(goes)
    assert not os.path.exists(path)


def test_each_pass_has_an_order_of_its_own_and_all_shards(scene: Scene) -> None:
    passes = scene.passes(shuffle=True)
    orders = []
    for _ in range(3):
        orders.append([])
        for number, shard in passes.one():
            orders[-1].append(os.path.basename(passes.get(number, shard)))
            passes.release(number, shard)
    assert all(sorted(order) == [file.path for file in SHARDS] for order in orders)
    assert len({tuple(order) for order in orders}) > 1


def test_passes_that_were_never_read_to_their_end_do_not_pile_up(scene: Scene) -> None:
    passes = scene.passes()
    for _ in range(3 * MOST_PASSES):
        for number, shard in passes.one():
            passes.get(number, shard)
    assert len(passes._passes) <= MOST_PASSES + 1


@pytest.mark.parametrize(("code", "kind"), [(STAGE_IN_FAILED, DataError), (PORTAL_UNREACHABLE, DataUnavailable)])
def test_why_a_shard_cannot_be_had_reaches_the_script(scene: Scene, code: int, kind: type[Exception]) -> None:
    scene.error = CannotRun(code, "CorruptInput", "1.tfrecord (of reviews) is corrupt, twice")
    connection = Connection(scene.input)
    connection.begin(["1.tfrecord"])
    with pytest.raises(kind, match="corrupt, twice"):
        all("wait" in connection.ask(op="get", shard=0) for _ in range(20))
    connection.close()


def test_a_runner_that_is_gone_is_an_error_that_may_pass(scene: Scene) -> None:
    scene.service.close()
    with pytest.raises(DataUnavailable, match="does not answer"):
        listed(scene.input)


def test_a_part_is_chosen_by_the_job_or_the_script() -> None:
    one = Input("", "", "/data", is_divided=True, part=(1, 3))
    assert one.part_for(None) == one.part_for("shards") == (1, 3)
    assert one.part_for("all") == (0, 1)
    assert one.part_for((2, 4)) == (2, 4)
    assert Input("", "", "/data", is_divided=True).part_for(None) == (0, 1)  # a parameter server
    for wrong in ("some", (3, 3), (-1, 2)):
        with pytest.raises(DataError, match="share is"):
            one.part_for(wrong)
