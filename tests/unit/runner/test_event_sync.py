"""The event files of a TensorBoard session: from a small portal of its own into the folder, and nowhere else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from yardmaster_runner import event_sync
from yardmaster_runner.answers import PortalAway
from yardmaster_runner.board_files import BoardFile, Segment, begun_at, chosen, is_below, read_listing
from yardmaster_runner.download import AddressRefused
from yardmaster_runner.event_sync import EventSync
from yardmaster_runner.portal import Portal
from yardmaster_runner.task_api import TaskApi

NAME = "events.out.tfevents.1700000000.host"


class Board:
    """A portal that lists event files, and its store. Files are kept as lists of segments."""

    def __init__(self) -> None:
        self.files: dict[str, list[bytes]] = {}
        self.folders: list[str] = []
        self.changes: list[str] = []
        self.knows_ranges = True
        self.status = 0
        self.refused: set[str] = set()
        self.asked: list[tuple[str, str]] = []
        self.page = 1000
        self.selection = ""
        self.listed = 0
        board = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, headers, body = board.answer(self.path, self.headers.get("Range", ""))
                self.send_response_only(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def put(self, path: str, *segments: bytes) -> None:
        self.files[path] = list(segments)
        self.changes.append(path)
        folder = path.partition("/")[0]
        if folder not in self.folders:
            self.folders.append(folder)

    def answer(self, target: str, wanted: str) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(target)
        self.asked.append((parts.path, wanted))
        if self.status:
            return self.status, {"Content-Type": "text/plain"}, b"away"
        if parts.path == "/api/v1/task/board/":
            return 200, {"Content-Type": "application/json"}, self.listing(parse_qs(parts.query)).encode()
        if parts.path in self.refused:
            return 403, {}, b"expired"
        path, _, number = parts.path[len("/objects/") :].rpartition("/")
        body = self.files[path][int(number)]
        if wanted and self.knows_ranges:
            start = int(wanted.partition("=")[2].partition("-")[0])
            return 206, {}, body[start:]
        return 200, {}, body

    def listing(self, query: dict[str, list[str]]) -> str:
        only = query.get("only", [""])[0]
        changes = [one for one in self.changes if not only or one.partition("/")[0] in only.split(",")]
        begun = int(query.get("cursor", ["0"])[0] or 0)
        changed = changes[begun : begun + self.page]
        cursor = begun + len(changed)
        files = [self.described(path) for path in dict.fromkeys(changed) if path in self.files]
        self.listed += len(files)
        more = cursor < len(changes)
        known = {"folders": self.folders, "files": files, "selection": "" if begun or only else self.selection}
        return json.dumps({"cursor": str(cursor), "more": more, "wait": 0.5, **known})

    def described(self, path: str) -> dict[str, object]:
        found, start = [], 0
        for number, one in enumerate(self.files[path]):
            found.append({"start": start, "size": len(one), "url": f"{self.url}/objects/{path}/{number}"})
            start += len(one)
        return {"path": path, "size": start, "segments": found}


@pytest.fixture
def board() -> Iterator[Board]:
    made = Board()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def sync(board: Board, tmp_path: Path) -> Iterator[EventSync]:
    (tmp_path / "token").write_text("ymt.test")
    (tmp_path / "data").mkdir()
    made = sync_of(board, tmp_path)
    yield made
    made.finish()
    for thread in made._threads:
        thread.join(10)


def sync_of(board: Board, folder: Path, most: int = 1 << 20) -> EventSync:
    api = TaskApi(Portal(board.url, str(folder / "token")), "worker", 0)
    one = EventSync(api, str(folder / "data"), str(folder / "in"), most, SAID.append)
    SAID.clear()
    return one


SAID: list[str] = []


def here(folder: Path) -> dict[str, bytes]:
    data = folder / "data"
    return {str(one.relative_to(data)): one.read_bytes() for one in sorted(data.rglob("*")) if one.is_file()}


def test_what_is_listed_comes_into_the_folder_page_by_page(sync: EventSync, board: Board, tmp_path: Path):
    board.page = 3
    for number in range(10):
        board.put(f"job-{number % 2}/train/{number}.{NAME}", b"a" * number, b"b")
    sync.sync_once()
    assert here(tmp_path) == {f"job-{n % 2}/train/{n}.{NAME}": b"a" * n + b"b" for n in range(10)}
    assert SAID == ["10 event files (0.0 MB) of 2 jobs are here"]
    assert list((tmp_path / "in").iterdir()) == []


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_of_a_file_that_grew_only_the_new_bytes_are_appended(
    sync: EventSync, board: Board, tmp_path: Path, knows_ranges: bool
):
    board.knows_ranges = knows_ranges
    path = f"job/{NAME}"
    board.put(path, b"0123")
    sync.sync_once()
    inode = (tmp_path / "data" / path).stat().st_ino
    board.put(path, b"0123", b"45")
    sync.sync_once()
    board.put(path, b"0123", b"456789")  # the new segment takes in the one before
    board.asked.clear()
    sync.sync_once()
    assert here(tmp_path) == {path: b"0123456789"}
    assert board.asked[1:] == [(f"/objects/{path}/1", "bytes=2-5")]
    assert (tmp_path / "data" / path).stat().st_ino == inode, "TensorBoard reads on in the same file"
    board.asked.clear()
    sync.sync_once()
    assert [asked for asked, _ in board.asked] == ["/api/v1/task/board/"]


def test_a_file_that_became_shorter_is_written_again(sync: EventSync, board: Board, tmp_path: Path):
    board.put(f"job/{NAME}", b"0123456789")
    sync.sync_once()
    board.put(f"job/{NAME}", b"abc")
    sync.sync_once()
    assert here(tmp_path) == {f"job/{NAME}": b"abc"}


def test_folders_that_are_shown_no_more_go(sync: EventSync, board: Board, tmp_path: Path):
    board.put(f"one/{NAME}", b"1")
    board.put(f"two/{NAME}", b"2")
    sync.sync_once()
    board.folders.remove("one")
    sync.sync_once()
    assert here(tmp_path) == {f"two/{NAME}": b"2"}


def test_a_folder_that_is_shown_again_comes_back_though_its_files_did_not_change(
    sync: EventSync, board: Board, tmp_path: Path
):
    board.put(f"one/{NAME}", b"1")
    board.put(f"two/{NAME}", b"2")
    board.folders.remove("one")
    sync.sync_once()
    board.folders.append("one")
    sync.sync_once()
    sync.sync_once()
    assert here(tmp_path) == {f"one/{NAME}": b"1", f"two/{NAME}": b"2"}
    board.asked.clear()
    sync.sync_once()
    assert [asked for asked, _ in board.asked] == ["/api/v1/task/board/"]


def test_what_is_in_the_folder_is_not_fetched_again_when_an_older_job_is_shown_again(
    sync: EventSync, board: Board, tmp_path: Path
):
    for name in ("old", "new", "newest"):
        board.put(f"{name}/{NAME}", name.encode())
    board.folders.remove("newest")
    sync.sync_once()
    board.folders = ["new", "newest"]
    sync.sync_once()
    sync.sync_once()
    board.folders = ["old", "new"]
    board.asked.clear()
    sync.sync_once()
    sync.sync_once()
    assert here(tmp_path) == {f"old/{NAME}": b"old", f"new/{NAME}": b"new"}
    assert [asked for asked, _ in board.asked if asked.startswith("/objects/")] == [f"/objects/old/{NAME}/0"]


def test_jobs_that_are_left_out_are_said_once(sync: EventSync, board: Board):
    board.put(f"job/{NAME}", b"0")
    board.selection = "Shows the newest 1 of 2 jobs."
    sync.sync_once()
    sync._failed("away")
    sync.sync_once()
    assert SAID.count("Shows the newest 1 of 2 jobs.") == 1


def test_a_new_folder_makes_no_other_be_listed_again(sync: EventSync, board: Board, tmp_path: Path):
    for number in range(50):
        board.put(f"old/{number}.{NAME}", b"0")
    board.put(f"hidden/{NAME}", b"1")
    board.folders.remove("hidden")
    sync.sync_once()
    board.put(f"new/{NAME}", b"2")
    board.folders += ["hidden", *(f"waits-{number}" for number in range(30))]
    board.listed, board.page = 0, 1
    sync.sync_once()
    assert here(tmp_path)[f"hidden/{NAME}"] == b"1"
    assert here(tmp_path)[f"new/{NAME}"] == b"2"
    assert board.listed <= 3
    asked = len(board.asked)
    sync.sync_once()
    assert [one for one, _ in board.asked[asked:]] == ["/api/v1/task/board/"]


def test_no_more_is_held_than_allowed_newest_first_and_what_goes_makes_space(
    sync: EventSync, board: Board, tmp_path: Path
):
    sync._most = 25
    for number in (1, 3, 2):
        board.put(f"job-{number}/events.out.tfevents.170000000{number}.h", b"%d" % number * 10)
    sync.sync_once()
    assert sorted(one.partition("/")[0] for one in here(tmp_path)) == ["job-2", "job-3"]
    most = "at most 50000 files and 0 MB, those that were begun last"
    assert SAID[1:] == [f"1 event files are left out: this session holds {most}"]
    sync.sync_once()
    assert len(SAID) == 2
    board.folders.remove("job-3")
    sync.sync_once()
    sync.sync_once()
    assert sorted(one.partition("/")[0] for one in here(tmp_path)) == ["job-1", "job-2"]


@pytest.mark.parametrize(("most", "files"), [(25, 100), (1 << 20, 2)])
def test_a_full_folder_gives_the_place_of_the_oldest_to_new_jobs_and_to_what_grows(
    sync: EventSync, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, files: int
):
    monkeypatch.setattr(event_sync, "MOST_FILES", files)
    sync._most = most
    for number in (1, 2):
        board.put(f"job-{number}/train/events.out.tfevents.170000000{number}.h", b"%d" % number * 10)
    sync.sync_once()
    board.put("job-3/train/events.out.tfevents.1700000003.h", b"3" * 10)
    sync.sync_once()
    assert sorted(one.partition("/")[0] for one in here(tmp_path)) == ["job-2", "job-3"]
    assert not (tmp_path / "data/job-1").exists(), "TensorBoard shows a run as long as its folder is there"
    assert len(SAID) == 2
    sync.sync_once()
    asked = len(board.asked)
    sync.sync_once()
    assert [one for one, _ in board.asked[asked:]] == ["/api/v1/task/board/"], "none is fetched and removed in turns"
    if files > 2:
        board.put("job-2/train/events.out.tfevents.1700000002.h", b"2" * 10, b"2" * 5)
        board.put("job-3/train/events.out.tfevents.1700000003.h", b"3" * 10, b"3" * 5)
        sync.sync_once()
        assert here(tmp_path) == {"job-3/train/events.out.tfevents.1700000003.h": b"3" * 15}


def test_no_more_files_are_held_than_allowed_however_many_pages_list_them(
    sync: EventSync, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(event_sync, "MOST_FILES", 3)
    monkeypatch.setattr(event_sync, "SURPLUS", 1)
    board.page = 2
    most: list[int] = []
    leave_out = sync._leave_out_the_oldest
    monkeypatch.setattr(sync, "_leave_out_the_oldest", lambda: (most.append(len(sync._wanted)), leave_out()))
    for number in (1, 9, 3, 8, 2, 7, 4, 6, 5):
        board.put(f"job-{number}/events.out.tfevents.170000000{number}.h", b"0")
    sync.sync_once()
    assert sorted(one.partition("/")[0] for one in here(tmp_path)) == ["job-7", "job-8", "job-9"]
    bound = "at most 3 files and 1 MB, those that were begun last"
    assert SAID[1:] == [f"6 event files are left out: this session holds {bound}"]
    assert max(most) <= 4 + board.page, "no more is kept of the pages that come"
    board.put("job-7/events.out.tfevents.1700000007.h", b"0", b"1")
    sync.sync_once()
    assert here(tmp_path)["job-7/events.out.tfevents.1700000007.h"] == b"01", "what is there goes on"
    board.folders.remove("job-9")
    sync.sync_once()
    sync.sync_once()
    assert sorted(one.partition("/")[0] for one in here(tmp_path)) == ["job-6", "job-7", "job-8"]
    assert len(SAID) == 2, "it is said once"


def test_a_restarted_runner_keeps_what_is_there(sync: EventSync, board: Board, tmp_path: Path):
    board.put(f"job/{NAME}", b"0123")
    sync.sync_once()
    again = sync_of(board, tmp_path)
    board.put(f"job/{NAME}", b"0123", b"45")
    board.asked.clear()
    again.sync_once()
    assert [asked for asked, _ in board.asked] == ["/api/v1/task/board/", f"/objects/job/{NAME}/1"]
    assert here(tmp_path) == {f"job/{NAME}": b"012345"}


def test_a_portal_that_is_away_or_older_is_waited_for(sync: EventSync, board: Board, tmp_path: Path):
    board.put(f"job/{NAME}", b"0")
    board.status = 503
    with pytest.raises(PortalAway):
        sync.sync_once()
    board.status = 0
    sync.sync_once()
    assert here(tmp_path) == {f"job/{NAME}": b"0"}


def test_an_address_that_has_expired_is_asked_for_again(sync: EventSync, board: Board, tmp_path: Path):
    board.put(f"job/{NAME}", b"0")
    board.refused.add(f"/objects/job/{NAME}/0")
    with pytest.raises(AddressRefused):
        sync.sync_once()
    assert sync._failed("expired") > 0
    board.refused.clear()
    sync.sync_once()
    assert here(tmp_path) == {f"job/{NAME}": b"0"}


def test_an_object_that_is_lost_holds_up_no_other(sync: EventSync, board: Board, tmp_path: Path):
    board.put(f"job/a.{NAME}", b"0")
    board.put(f"job/b.{NAME}", b"1")
    board.refused.add(f"/objects/job/a.{NAME}/0")
    for _ in range(event_sync.TRIES - 1):
        with pytest.raises(AddressRefused):
            sync.sync_once()
        sync._failed("refused")
    sync.sync_once()
    assert here(tmp_path) == {f"job/b.{NAME}": b"1"}
    board.put(f"job/b.{NAME}", b"1", b"2")
    sync.sync_once()
    assert here(tmp_path) == {f"job/b.{NAME}": b"12"}


def test_only_addresses_that_are_still_good_show_that_an_object_is_lost(
    sync: EventSync, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    board.put(f"job/a.{NAME}", b"0")
    board.put(f"job/b.{NAME}", b"1")
    board.refused.add(f"/objects/job/a.{NAME}/0")

    def is_refused() -> None:
        with pytest.raises(AddressRefused):
            sync.sync_once()
        sync._failed("refused")

    with monkeypatch.context() as patched:
        patched.setattr(event_sync, "ADDRESSES_LAST", -1.0)
        for _ in range(event_sync.TRIES + 1):
            is_refused()
    sync._listed_at -= 2 * event_sync.ADDRESSES_LAST  # from here on all is listed again
    for _ in range(event_sync.TRIES - 1):
        is_refused()
    sync.sync_once()
    assert here(tmp_path) == {f"job/b.{NAME}": b"1"}


def test_a_path_that_is_a_file_and_a_folder_holds_up_no_other(sync: EventSync, board: Board, tmp_path: Path):
    board.put(f"job/{NAME}", b"0")
    sync.sync_once()
    board.put(f"job/{NAME}/deeper.{NAME}", b"1")
    board.put(f"job/z.{NAME}", b"2")
    for _ in range(event_sync.TRIES - 1):
        with pytest.raises(OSError, match=r"Not a directory|File exists"):
            sync.sync_once()
    sync.sync_once()
    assert here(tmp_path) == {f"job/{NAME}": b"0", f"job/z.{NAME}": b"2"}


@pytest.mark.parametrize(
    "path",
    [
        f"../{NAME}", f"job/../../{NAME}", f"/etc/{NAME}", f"job//{NAME}", f"other/{NAME}", NAME, f"job/./{NAME}",
        "job/passwd", "job/" + "tfevents" * 40, f"job/a\0b/{NAME}", f"job\\..\\{NAME}", f"job/\ud800{NAME}",
        "job/tfevents/",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_folder(path: str):
    assert not is_below(path, frozenset({"job", "..", "."}))
    answer = {"cursor": "", "folders": ["job"], "files": [{"path": path, "size": 0, "segments": []}]}
    assert read_listing(answer).files == ()


def test_folders_whose_names_lead_elsewhere_are_none():
    answer = {"cursor": "", "folders": ["..", ".", "", "a/b", "job"], "files": []}
    assert read_listing(answer).folders == {"job"}


@pytest.mark.parametrize("segments", [[(1, 2)], [(0, 2), (3, 1)], [(0, 2), (1, 2)], [(0, 5)], []])
def test_a_file_with_holes_is_not_fetched(segments: list[tuple[int, int]]):
    found = [{"start": start, "size": size, "url": "http://x/"} for start, size in segments]
    answer = {"cursor": "", "folders": ["job"], "files": [{"path": f"job/{NAME}", "size": 3, "segments": found}]}
    assert read_listing(answer).files == ()


@pytest.mark.parametrize("answer", [{}, {"cursor": "", "folders": [], "files": [{}]}, {"cursor": "", "folders": 5}])
def test_an_answer_that_is_no_listing_is_said_to_be_none(answer: dict[str, object]):
    with pytest.raises(ValueError, match="not understood"):
        read_listing(answer)


def test_the_newest_files_are_chosen_first():
    files = [
        BoardFile(f"job/events.out.tfevents.{at}.h", 10, (Segment(0, 10, "u"),)) for at in (1600000000, 1700000000, 1)
    ]  # fmt: skip
    choice = chosen(files, {"old": 5, "new.tfevents.1500000000": 6}, 26, 100)
    assert [begun_at(one.path) for one in choice.fetched] == [1700000000, 1600000000]
    assert [begun_at(one.path) for one in choice.left_out] == [1]
    assert choice.removed == ("old",)


def test_it_runs_until_it_is_told_to_finish(sync: EventSync, board: Board, tmp_path: Path):
    board.status = 500
    board.put(f"job/{NAME}", b"0")
    sync.start()
    while not SAID:
        sync.join(0.01)
    assert SAID[0].startswith("event files are not up to date: ")
    board.status = 0
    while not here(tmp_path):
        sync.join(0.01)
    sync.finish()
    sync.join(10)
    assert not sync.is_alive()
