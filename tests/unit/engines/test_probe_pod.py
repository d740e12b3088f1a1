"""What is read from a pod that tried the portal's address, and what is said of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from yardmaster.engines.kubernetes import probe_pod
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.engines.kubernetes.probe_pod import Found, Seen
from yardmaster.ids import new_id

OPTIONS = TaskOptions(image="tasks:1", node_selector={"pool": "cpu"}, image_pull_secrets=("registry",))
URL = "http://10.0.0.10:8080"


def ended(message: str, code: int = 0) -> list[dict]:
    state = {"terminated": {"exitCode": code, "message": message, "reason": "Error"}}
    return [{"status": {"phase": "Succeeded", "containerStatuses": [{"state": state}]}}]


class TestItsObjects:
    def test_it_is_held_to_what_tasks_are_held_to_and_goes_where_they_go(self):
        probe_id = probe_pod.new_probe_id()
        made = probe_pod.job(probe_id, [URL], OPTIONS)
        pod = made["spec"]["template"]["spec"]
        assert pod["containers"][0]["image"] == "tasks:1"
        assert pod["nodeSelector"] == {"pool": "cpu"}
        assert pod["imagePullSecrets"] == [{"name": "registry"}]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert pod["automountServiceAccountToken"] is False

    def test_it_ends_by_itself_whatever_becomes_of_who_asked(self):
        spec = probe_pod.job(probe_pod.new_probe_id(), [URL], OPTIONS)["spec"]
        assert spec["backoffLimit"] == 0
        assert spec["activeDeadlineSeconds"] <= 600
        assert spec["ttlSecondsAfterFinished"] <= 60

    def test_no_watch_of_the_portal_takes_it_for_a_run(self):
        labels = probe_pod.job(probe_pod.new_probe_id(), [URL], OPTIONS)["metadata"]["labels"]
        assert "app.kubernetes.io/managed-by" not in labels

    def test_its_ids_are_no_namespace_s_and_differ(self):
        ids = {str(probe_pod.new_probe_id()) for _ in range(100)}
        assert len(ids) == 100
        assert all(probe_pod.is_probe_id(one) for one in ids)
        assert not any(probe_pod.is_probe_id(str(new_id())) for _ in range(100))


class TestWhatItTells:
    def test_nothing_yet(self):
        assert probe_pod.found_in([], [URL]) is None
        waiting = {"waiting": {"reason": "ContainerCreating"}}
        assert probe_pod.found_in([{"status": {"containerStatuses": [{"state": waiting}]}}], [URL]) is None

    def test_each_address_has_its_own_answer(self):
        told = {"0": {"error": "timed out"}, "1": {"status": 401, "type": "application/problem+json", "text": "x"}}
        found = probe_pod.found_in(ended(json.dumps(told)), ["http://a", "http://b"])
        assert found == Found(
            {"http://a": Seen(error="timed out"), "http://b": Seen(401, "application/problem+json", "x")}
        )

    @pytest.mark.parametrize(
        "message", ["", "Traceback: no such module", "[1, 2]", '{"0": 7}', '{"0": {"status": "x"}}']
    )
    def test_a_pod_that_says_something_else_has_told_nothing(self, message: str):
        found = probe_pod.found_in(ended(message, 1), [URL])
        assert found is not None
        assert not found.seen
        assert "ended with 1" in found.problem

    def test_an_image_that_cannot_be_pulled_is_no_word_about_the_address(self):
        state = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
        found = probe_pod.found_in([{"status": {"containerStatuses": [{"state": state}]}}], [URL])
        assert found is not None
        reach = probe_pod.reach_of(found, URL, OPTIONS)
        assert reach.reached is None
        assert "ImagePullBackOff: not found" in reach.message

    def test_one_that_is_late_says_what_the_scheduler_says(self):
        condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
        assert "0/1 nodes" in probe_pod.why_late([{"status": {"conditions": [condition]}}], 45).problem
        assert "no pod" in probe_pod.why_late([], 45).problem


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
        reach = probe_pod.reach_of(Found({URL: seen}), URL, OPTIONS)
        assert reach.reached is reached
        assert URL in reach.message
        assert remedy in reach.remedy

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
    def test_a_loopback_address_is_the_pod_itself(self, host: str):
        url = f"http://{host}:8080"
        reach = probe_pod.reach_of(Found({url: Seen(error="Connection refused")}), url, OPTIONS)
        assert "is the pod itself" in reach.remedy


class TestTheScript:
    """Run here as in a pod, but for the place where it writes."""

    def run(self, tmp_path, *urls: str) -> Found:
        log = tmp_path / "termination-log"
        script = probe_pod.SCRIPT.replace("/dev/termination-log", str(log))
        subprocess.run([sys.executable, "-c", script, "0.2", *urls], check=True, timeout=60)
        found = probe_pod.found_in(ended(log.read_text()), urls)
        assert found is not None
        return found

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
        assert probe_pod.is_the_portal(found.seen[here])
        assert "word" in found.seen[here].text
        assert "refused" in found.seen["http://127.0.0.1:1"].error

    def test_what_it_writes_fits_a_termination_message(self, tmp_path):
        found = self.run(tmp_path, *[f"http://{'a' * 60}.invalid:{port}" for port in range(8000, 8008)])
        assert len(found.seen) == 8
        assert len((tmp_path / "termination-log").read_text()) < 4096
