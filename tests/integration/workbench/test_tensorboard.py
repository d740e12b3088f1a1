"""The real TensorBoard behind a real gate: its pages below the session's prefix, and steps that come while it runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from portal.env import task_python
from tests.unit.runner.event_writer import event, field, framed, scalar
from yardmaster_runner.gate import VARIABLE, Gate
from yardmaster_runner.gate_protocol import greeting, new_nonce, place_of, proof_of_portal
from yardmaster_runner.own_programs import MODULES, Orders, to_variable

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
SESSION = "0193e5a4-0000-7000-8000-000000000001"
KEY = "yms.key"
PATIENCE = 60.0


@dataclass
class Board:
    """A TensorBoard, its folder and the way to it."""

    gate: Gate
    process: subprocess.Popen[str]
    folder: Path

    def connection(self) -> HTTPConnection:
        """A connection that has passed the gate."""
        one = HTTPConnection("127.0.0.1", self.gate.port, timeout=PATIENCE)
        one.connect()
        nonce = new_nonce()
        one.sock.sendall(greeting(nonce))
        proof = proof_of_portal(KEY, place_of(one.sock.getpeername()), nonce, one.sock.recv(200))
        assert proof is not None
        one.sock.sendall(proof)
        return one

    def get(self, path: str) -> tuple[int, HTTPResponse, bytes]:
        one = self.connection()
        one.request("GET", path)
        answer = one.getresponse()
        body = answer.read()
        one.close()
        return answer.status, answer, body

    def data(self, path: str) -> object:
        status, _, body = self.get(f"/w/{SESSION}/data/{path}")
        assert status == 200, body[:300]
        return json.loads(body)

    def answers(self) -> bool:
        assert self.process.poll() is None, "TensorBoard has ended"
        try:
            return self.get(f"/w/{SESSION}/data/environment")[0] == 200
        except OSError:
            return False


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> float:
    """How long it took."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, "it did not come to pass"
        time.sleep(0.1)
    return time.monotonic() - begun


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    work = tmp_path_factory.mktemp("board")
    folder = work / "data"
    environment = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "platform"), "HOME": str(work),
        "CUDA_VISIBLE_DEVICES": "-1", "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    writer = str(Path(__file__).with_name("write_events.py"))
    subprocess.run([task_python(), writer, str(folder / "digits-1/train")], env=environment, check=True)
    (folder / "broken-2").mkdir()
    (folder / "broken-2" / "a.tfevents.1").write_bytes(framed(b"no event") + framed(event(step=1)) + b"\0" * 100)
    options = {"session": SESSION, "bytes": 1 << 30}
    orders = Orders(options, str(folder), "", "", "", "", task=0, tasks=1)
    gate = Gate("127.0.0.1:0", KEY, str(work))
    environment.update({**to_variable(orders), VARIABLE: gate.socket_path})
    with (work / "log").open("w") as log, subprocess.Popen(
        [task_python(), "-m", MODULES["tensorboard"]], env=environment, stdout=log, stderr=log, text=True
    ) as process:  # fmt: skip
        one = Board(gate, process, folder)
        until(one.answers)
        yield one
        process.kill()
    gate.close()


def values(board: Board, run: str, tag: str) -> list[list[float]]:
    """None yet as long as TensorBoard does not know the tag: it lists a run before it has read its events."""
    status, _, body = board.get(f"/w/{SESSION}/data/plugin/scalars/scalars?run={run}&tag={tag}")
    if status == 404:
        return []
    assert status == 200, body[:300]
    found = json.loads(body)
    assert isinstance(found, list)
    return found


def test_its_runs_and_scalars_are_served_below_the_sessions_prefix(board: Board):
    until(lambda: "digits-1/train" in board.data("runs"))  # type: ignore[operator]
    until(lambda: len(values(board, "digits-1/train", "loss")) == 20)
    tags = board.data("plugin/scalars/tags")
    assert set(tags) == {"digits-1/train"}  # type: ignore[call-overload]
    assert [step for _, step, _ in values(board, "digits-1/train", "loss")] == list(range(20))


@pytest.mark.parametrize("plugin", ["images", "histograms", "text"])
def test_plugins_show_what_tensorflow_wrote(board: Board, plugin: str):
    until(lambda: "digits-1/train" in board.data(f"plugin/{plugin}/tags"))  # type: ignore[operator]


def test_its_page_and_those_of_its_plugins_come_with_the_prefix_alone(board: Board):
    status, answer, page = board.get(f"/w/{SESSION}/")
    assert (status, answer.headers.get_content_type()) == (200, "text/html")
    assert b'name="tb-relative-root"' in page
    status, answer, _ = board.get(f"/w/{SESSION}")
    assert status in (301, 302, 308)
    assert answer.headers["Location"].endswith(f"/w/{SESSION}/") or answer.headers["Location"] == f"{SESSION}/"
    assert board.get(f"/w/{SESSION}/index.js?_file_hash=1")[0] == 200
    assert board.get(f"/w/{SESSION}/data/plugin_entry.html?name=projector")[0] == 200
    assert board.get("/data/runs")[0] == 404
    assert "tensorboard" not in board.get(f"/w/{'0' * 36}/data/runs")[2].decode().lower()


def test_a_step_that_is_added_is_seen_within_seconds(board: Board):
    run = board.folder / "live-3"
    run.mkdir()
    now = time.time()
    with (run / "events.out.tfevents.1.host").open("ab") as file:
        file.write(framed(event(step=1, time=now, summary=[scalar("loss", 0.5)])))
        file.flush()
        until(lambda: "live-3" in board.data("runs"), 10)  # type: ignore[operator]
        whole = framed(event(step=2, time=now, summary=[scalar("loss", 0.25)]))
        file.write(whole[:20])
        file.flush()
        until(lambda: len(values(board, "live-3", "loss")) == 1, 10)
        file.write(whole[20:])
        file.flush()
        took = until(lambda: len(values(board, "live-3", "loss")) == 2, 10)
    assert took < 10


def test_its_page_learns_of_new_events_from_a_script_that_its_policy_allows(board: Board):
    def events_read() -> int:
        status, _, body = board.get(f"/w/{SESSION}/yardmaster-live")
        assert status == 200
        return int(body)

    _, answer, page = board.get(f"/w/{SESSION}/")
    scripts = f'<script src="yardmaster-live.js"></script><script src="/w/{SESSION}/.yardmaster/notice.js"></script>'
    assert page.endswith(scripts.encode() + b"</body></html>")
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    status, answer, script = board.get(f"/w/{SESSION}/yardmaster-live.js")
    assert (status, answer.headers.get_content_type()) == (200, "text/javascript")
    assert b"app-header-reload" in script
    assert board.get("/yardmaster-live.js")[0] == 404
    before = events_read()
    time.sleep(3)
    assert events_read() == before, "a page is loaded again only for what is new"
    run = board.folder / "live-7"
    run.mkdir()
    (run / "a.tfevents").write_bytes(framed(event(step=1, time=time.time(), summary=[scalar("loss", 1)])))
    until(lambda: events_read() > before, 10)
    assert len(values(board, "live-7", "loss")) == 1


def test_a_run_whose_folder_is_removed_goes(board: Board):
    run = board.folder / "gone-4"
    run.mkdir()
    (run / "a.tfevents").write_bytes(framed(event(step=1, time=time.time(), summary=[scalar("loss", 1)])))
    until(lambda: "gone-4" in board.data("runs"), 20)  # type: ignore[operator]
    (run / "a.tfevents").unlink()
    run.rmdir()
    until(lambda: "gone-4" not in board.data("runs"), 20)  # type: ignore[operator]


def test_a_connection_carries_several_requests(board: Board):
    one = board.connection()
    used = one.sock
    for _ in range(3):
        one.request("GET", f"/w/{SESSION}/data/runs")
        answer = one.getresponse()
        assert answer.status == 200
        answer.read()
        assert one.sock is used
    one.close()


def test_files_that_are_none_do_not_end_it(board: Board):
    hostile = board.folder / "hostile-5"
    hostile.mkdir()
    huge = (1 << 62).to_bytes(8, "little")
    for number, content in enumerate((b"", b"x" * 1000, huge + framed(b"")[8:], framed(b"\xff" * 50) * 3)):
        (hostile / f"{number}.tfevents").write_bytes(content)
    (hostile / "link.tfevents").symlink_to("/dev/zero")
    run = board.folder / "after-6"
    run.mkdir()
    (run / "a.tfevents").write_bytes(framed(event(step=1, time=time.time(), summary=[scalar("loss", 1)])))
    until(lambda: "after-6" in board.data("runs"), 30)  # type: ignore[operator]


def test_a_tag_without_a_value_is_left_out_and_the_others_shown(board: Board):
    run = board.folder / "half-7"
    run.mkdir()
    about_scalars = field(9, field(1, field(1, b"scalars")) + b"\x20\x01")
    summary = [field(1, b"empty") + about_scalars, scalar("loss", 1.0)]
    (run / "a.tfevents").write_bytes(framed(event(step=1, summary=summary)))
    until(lambda: "half-7" in board.data("plugin/scalars/tags"))  # type: ignore[operator]
    tags = board.data("plugin/scalars/tags")
    assert isinstance(tags, dict)
    assert list(tags["half-7"]) == ["loss"]
    assert board.get(f"/w/{SESSION}/data/plugin/scalars/scalars?run=half-7&tag=empty")[0] == 404


def test_tags_that_are_too_many_are_left_out_and_the_others_shown(board: Board):
    folder = board.folder / "many"
    folder.mkdir()
    values = [scalar(f"tag-{number}", 1.0) for number in range(6000)]
    events = [event(step=1, summary=values[begin : begin + 1000]) for begin in range(0, 6000, 1000)]
    (folder / "events.out.tfevents.1.x").write_bytes(b"".join(map(framed, events)))
    deadline = time.monotonic() + PATIENCE
    found: dict[str, object] = {}
    while len(found) < 5000 and time.monotonic() < deadline:
        tags = board.data("plugin/scalars/tags")
        assert isinstance(tags, dict)
        found = tags.get("many", {})
        time.sleep(0.2)
    assert len(found) == 5000
    assert "tag-0" in found


def test_it_listens_on_no_port_and_ends_in_time_when_told(board: Board):
    inodes = {
        os.readlink(f"/proc/{board.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{board.process.pid}/fd")
    }  # fmt: skip
    listening = [
        line.split()[9] for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]  # fmt: skip
    assert not inodes & {f"socket:[{inode}]" for inode in listening}
    board.process.send_signal(signal.SIGTERM)
    assert board.process.wait(10) == 128 + signal.SIGTERM
    log = (board.folder.parent / "log").read_text()
    assert "answers; starting took" in log
    assert "TensorBoard is stopped." in log
