"""What is read from a pod that tried the portal's address, and what is said of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from yardmaster.engines.kubernetes.probes import reach
from yardmaster.engines.kubernetes.probes.pod import ProbeAnswer
from yardmaster.engines.kubernetes.probes.reach import Found, Seen
from yardmaster.engines.kubernetes.render.options import TaskOptions

OPTIONS = TaskOptions(image="tasks:1")
URL = "http://10.0.0.10:8080"


class TestWhatItTells:
    def test_each_address_has_its_own_answer(self):
        told = {"0": {"error": "timed out"}, "1": {"status": 401, "type": "application/problem+json", "text": "x"}}
        found = reach.found_in(ProbeAnswer(json.dumps(told), 0), ["http://a", "http://b"])
        assert found == Found(
            {"http://a": Seen(error="timed out"), "http://b": Seen(401, "application/problem+json", "x")}
        )

    @pytest.mark.parametrize(
        "message", ["", "Traceback: no such module", "[1, 2]", '{"0": 7}', '{"0": {"status": "x"}}']
    )
    def test_a_pod_that_says_something_else_has_told_nothing(self, message: str):
        found = reach.found_in(ProbeAnswer(message, 1), [URL])
        assert not found.seen
        assert "ended with 1" in found.problem

    def test_a_pod_that_told_nothing_is_no_word_about_the_address(self):
        found = reach.found_in(ProbeAnswer(problem="The pod that was to try it could not begin: not found"), [URL])
        said = reach.finding_of(found, URL, OPTIONS)
        assert said.is_well is None
        assert "could not begin: not found" in said.message


class TestWhatIsSaid:
    @pytest.mark.parametrize(
        ("seen", "reached", "remedy"),
        [
            (Seen(401, "application/problem+json"), True, ""),
            (Seen(401, "text/html"), False, "YARDMASTER_TASK_URL"),
            (Seen(200, "text/html"), False, "YARDMASTER_TASK_URL"),
            (Seen(400, "application/problem+json"), False, "Add 10.0.0.10 to YARDMASTER_ALLOWED_HOSTS"),
            (Seen(error="timed out"), False, "YARDMASTER_HOST"),
        ],
    )
    def test_the_address_and_the_remedy_are_named(self, seen: Seen, reached: bool, remedy: str):
        said = reach.finding_of(Found({URL: seen}), URL, OPTIONS)
        assert said.is_well is reached
        assert URL in said.message
        assert remedy in said.remedy

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
    def test_a_loopback_address_is_the_pod_itself(self, host: str):
        url = f"http://{host}:8080"
        said = reach.finding_of(Found({url: Seen(error="Connection refused")}), url, OPTIONS)
        assert "is the pod itself" in said.remedy


class TestTheScript:
    """Run here as in a pod, but for the place where it writes."""

    def run(self, tmp_path, *urls: str) -> Found:
        log = tmp_path / "termination-log"
        script = reach.PROGRAM.replace("/dev/termination-log", str(log))
        subprocess.run([sys.executable, "-c", script, "0.2", *urls], check=True, timeout=60)
        return reach.found_in(ProbeAnswer(log.read_text(), 0), urls)

    def test_it_tells_answers_from_none(self, tmp_path):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(401)
                self.send_header("Content-Type", "application/problem+json")
                self.end_headers()
                self.wfile.write(b'{"code": "word"}')

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}"
        try:
            found = self.run(tmp_path, here, "http://127.0.0.1:1")
        finally:
            server.shutdown()
            server.server_close()
        assert reach.is_the_portal(found.seen[here])
        assert "word" in found.seen[here].text
        assert "refused" in found.seen["http://127.0.0.1:1"].error

    def test_what_it_writes_fits_a_termination_message(self, tmp_path):
        found = self.run(tmp_path, *[f"http://{'a' * 60}.invalid:{port}" for port in range(8000, 8008)])
        assert len(found.seen) == 8
        assert len((tmp_path / "termination-log").read_text()) < 4096
