"""What a Spark history makes of the event logs in its folder, and how it passes requests on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from yardmaster_runner.board_files import is_below
from yardmaster_runner.workbench.history_folder import logs_below, mirror
from yardmaster_runner.workbench.history_pages import HistoryPages

PREFIX = "/w/1"


def log(folder: Path, path: str, text: str = "x") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_logs_of_all_jobs_stand_in_one_folder_and_grow_there(tmp_path: Path) -> None:
    data, shown = tmp_path / "data", tmp_path / "shown"
    shown.mkdir()
    one = log(data, "my.job-1/spark-events/app-1.inprogress")
    log(data, "my.job-1/attempt-2/spark-events/app-2.zstd")
    log(data, "my.job-1/other/app-3")
    mirror(str(data), str(shown))
    names = {"my-job-1-app-1.inprogress", "my-job-1-attempt-2-app-2.zstd"}
    assert {path.name for path in shown.iterdir()} == names
    with one.open("a") as file:
        file.write("more")
    assert (shown / "my-job-1-app-1.inprogress").read_text() == "xmore"
    one.unlink()
    log(data, "my.job-1/spark-events/app-1.inprogress", "again")
    mirror(str(data), str(shown))
    assert (shown / "my-job-1-app-1.inprogress").read_text() == "again"


def test_a_complete_log_takes_the_place_of_what_it_was(tmp_path: Path) -> None:
    log(tmp_path, "a/spark-events/app-1.zstd.inprogress")
    whole = log(tmp_path, "a/spark-events/app-1.zstd")
    assert logs_below(str(tmp_path)) == {"a-app-1.zstd": str(whole)}


def test_a_name_that_no_folder_takes_costs_no_other_log(tmp_path: Path) -> None:
    data, shown = tmp_path / "data", tmp_path / "shown"
    shown.mkdir()
    log(data, "a/spark-events/" + "n" * 254)
    log(data, f"a/{'d' * 130}/{'e' * 130}/spark-events/app-1")
    log(data, "b/spark-events/app-1")
    mirror(str(data), str(shown))
    assert [path.name for path in shown.iterdir()] == ["b-app-1"]


@pytest.mark.parametrize(
    ("path", "is_shown"),
    [
        ("a/spark-events/app-1", True),
        ("a/attempt-2/spark-events/app-1.inprogress", True),
        ("a/spark-events/deeper/app-1", False),
        ("spark-events/app-1", False),
        ("a/../spark-events/app-1", False),
        ("b/spark-events/app-1", False),
    ],
)
def test_of_what_the_portal_lists_event_logs_alone_are_fetched(path: str, is_shown: bool) -> None:
    assert is_below(path, frozenset({"a"})) is is_shown


class Spark(BaseHTTPRequestHandler):
    """As its history server answers."""

    def do_GET(self) -> None:
        if self.path == "/old":
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/new?a=1")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path == "/within":
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}{PREFIX}/new")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = f"{self.path} {self.headers.get('Accept')} {self.headers.get('Cookie')}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *words: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Spark) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def asked(port: int, path: str, method: str = "GET", **headers: str) -> tuple[str, dict[str, str], str]:
    said: list = []
    environment = {"REQUEST_METHOD": method, "PATH_INFO": path.partition("?")[0], **headers}
    environment["QUERY_STRING"] = path.partition("?")[2]
    content = b"".join(HistoryPages(port, PREFIX)(environment, lambda status, names: said.extend([status, names])))
    return said[0], dict(said[1]), content.decode()


def test_a_request_goes_on_without_the_sessions_path_and_its_cookies(port: int) -> None:
    status, _, body = asked(port, "/w/1/jobs/ä?x=%20", HTTP_ACCEPT="text/html", HTTP_COOKIE="secret")
    assert (status, body) == ("200 OK", "/jobs/%E4?x=%20 text/html None")


@pytest.mark.parametrize(("path", "to"), [("/w/1/old", "/w/1/new?a=1"), ("/w/1/within", "/w/1/new")])
def test_a_redirect_stays_in_the_session(port: int, path: str, to: str) -> None:
    status, headers, _ = asked(port, path)
    assert status.startswith("302")
    assert headers["Location"] == to


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/w/1/jobs/", "POST", "405"), ("/w/2/jobs/", "GET", "404"), ("/w/1", "GET", "404")],
)
def test_what_is_no_page_is_refused(port: int, path: str, method: str, status: str) -> None:
    assert asked(port, path, method)[0].startswith(status)


def test_a_spark_that_is_away_is_said(port: int) -> None:
    assert asked(1, "/w/1/jobs/")[0].startswith("502")
