"""Waiting for several jobs, across a portal that is away for a while; and what `jobs wait` makes of how they end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.client.flaky_server import Asked, FlakyServer
from yardmaster_client import NotReachable, PortalError, Yardmaster
from yardmaster_client.cli.main import run
from yardmaster_client.waiting import Unfinished

ONE, TWO, THREE = (f"{number}0000000-0000-7000-8000-000000000000" for number in (1, 2, 3))


class Jobs:
    """A portal's jobs: each answers with the next of its phases, the last one for ever."""

    def __init__(self, server: FlakyServer, **phases: list[str | None]) -> None:
        self.phases = {job_id: list(phases[name]) for name, job_id in (("one", ONE), ("two", TWO), ("three", THREE))
                       if name in phases}  # fmt: skip
        self._lock = threading.Lock()
        server.by_path = self.answer

    def answer(self, asked: Asked) -> tuple[int, Any] | None:
        job_id = asked.path.strip("/").split("/")[-1].partition("?")[0]
        if job_id not in self.phases or asked.path.startswith("/ws/"):
            return 404, {"code": "not_found", "detail": "There is none."}
        with self._lock:
            left = self.phases[job_id]
            phase = left.pop(0) if len(left) > 1 else left[0]
        return None if phase is None else (200, {"id": job_id, "name": f"job {job_id[0]}", "phase": phase})


@pytest.fixture
def portal(server: FlakyServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("yardmaster_client.changes.LOOK_EVERY", 0.01)
    monkeypatch.setattr("yardmaster_client.transport._pause", lambda answer, attempt: 0.001)
    monkeypatch.setenv("YARDMASTER_URL", server.url)
    monkeypatch.setenv("YARDMASTER_TOKEN", "x")
    with Yardmaster(server.url, "x") as found:
        yield found


def test_all_are_returned_in_the_order_asked_for_with_every_phase_seen(server: FlakyServer, portal: Yardmaster):
    Jobs(server, one=["QUEUED", "RUNNING", "RUNNING", "SUCCEEDED"], two=["FAILED"], three=["RUNNING", "STOPPED"])
    seen: list[tuple[str, str]] = []
    found = portal.jobs.wait_all([THREE, ONE, TWO, ONE], on_phase=lambda job: seen.append((job.id, job.phase)))
    assert [(job.id, job.phase) for job in found] == [
        (THREE, "STOPPED"), (ONE, "SUCCEEDED"), (TWO, "FAILED"), (ONE, "SUCCEEDED")]  # fmt: skip
    assert [phase for job_id, phase in seen if job_id == ONE] == ["QUEUED", "RUNNING", "SUCCEEDED"]


def test_a_portal_that_is_away_is_waited_for(server: FlakyServer, portal: Yardmaster):
    away: list[str | None] = [None] * 17
    Jobs(server, one=["RUNNING", *away, "SUCCEEDED"])
    assert portal.jobs.wait_all([ONE])[0].phase == "SUCCEEDED"


def test_but_not_for_ever(server: FlakyServer, portal: Yardmaster):
    Jobs(server, one=[None])
    with pytest.raises(NotReachable):
        portal.jobs.wait(ONE, give_up_after=0.0)


def test_what_is_unfinished_is_said(server: FlakyServer, portal: Yardmaster):
    Jobs(server, one=["SUCCEEDED"], two=["RUNNING"])
    with pytest.raises(Unfinished, match=r"job 2 \(RUNNING\)") as caught:
        portal.jobs.wait_all([ONE, TWO], timeout=0.0)
    assert [job.phase for job in caught.value.jobs] == ["SUCCEEDED", "RUNNING"]


def test_one_that_is_not_there_ends_the_wait_for_all(server: FlakyServer, portal: Yardmaster):
    Jobs(server, one=["RUNNING"])
    with pytest.raises(PortalError) as caught:
        portal.jobs.wait_all([ONE, TWO])
    assert caught.value.status == 404


def test_too_many_are_refused(portal: Yardmaster):
    with pytest.raises(ValueError, match="at most 200"):
        portal.jobs.wait_all([str(number) for number in range(201)])


@pytest.mark.parametrize(
    ("phases", "code"),
    [
        ({"one": ["RUNNING", "SUCCEEDED"], "two": ["SUCCEEDED"]}, 0),
        ({"one": ["SUCCEEDED"], "two": ["RUNNING", "FAILED"], "three": ["STOPPED"]}, 1),
        ({"one": ["SUCCEEDED"], "two": ["STOPPED"]}, 4),
    ],
)
def test_the_exit_code_says_how_they_ended(
    server: FlakyServer, portal: Yardmaster, capsys, phases: dict[str, list[str | None]], code: int
):
    jobs = Jobs(server, **phases)
    assert run(["jobs", "wait", *jobs.phases]) == code
    err = capsys.readouterr().err
    for job_id, left in jobs.phases.items():
        assert f"{left[-1]} job {job_id[0]}" in " ".join(err.split())


def test_a_wait_that_takes_too_long_is_exit_5(server: FlakyServer, portal: Yardmaster, capsys):
    Jobs(server, one=["QUEUED"])
    assert run(["jobs", "wait", ONE, "--timeout", "0"]) == 5
    assert "job 1 is still QUEUED" in capsys.readouterr().err


def test_quiet_says_the_end_alone_and_json_goes_to_stdout(server: FlakyServer, portal: Yardmaster, capsys):
    Jobs(server, one=["QUEUED", "SUCCEEDED"], two=["SUCCEEDED"])
    assert run(["jobs", "wait", ONE, TWO, "--quiet", "--json"]) == 0
    out, err = capsys.readouterr()
    assert [one["phase"] for one in json.loads(out)] == ["SUCCEEDED"] * 2
    assert err == ""


Sent = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def retried(server: FlakyServer, portal: Yardmaster) -> Sent:
    """Runs `jobs retry` and returns its exit code with what was sent to the portal."""
    spec = {"name": "n", "roles": {"worker": {"replicas": 1}}, "environment": {"A": "1"}, "arguments": ["--a"]}
    job = {"id": ONE, "name": "job 1", "phase": "FAILED", "spec": spec, "namespace": "n1"}
    server.by_path = lambda asked: (200, job | ({"phase": "QUEUED"} if asked.method == "POST" else {}))

    def retry(*words: str) -> tuple[int, dict[str, Any]]:
        code = run(["jobs", "retry", ONE, *words])
        posts = [one for one in server.asked if one.method == "POST"]
        return code, json.loads(posts[-1].body) if posts else {}

    return retry


def test_a_retry_without_changes_sends_no_specification(retried: Sent):
    assert retried() == (0, {})


def test_changes_are_made_to_the_jobs_own_specification(retried: Sent):
    changes = ("--set", "roles.worker.replicas=3", "--set", "arguments=[--b, '2']", "-e", "B=x=y", "-e", "A=")
    code, sent = retried(*changes)
    assert code == 0
    assert sent["spec"] == {"name": "n", "roles": {"worker": {"replicas": 3}}, "environment": {"A": "", "B": "x=y"},
                            "arguments": ["--b", "2"]}  # fmt: skip


@pytest.mark.parametrize("words", [("--set", "roles.worker"), ("-e", "NAME"), ("-e", "=x"), ("--set", "arguments.7=x")])
def test_changes_that_say_nothing_are_wrong_usage(retried: Sent, words: tuple[str, ...]):
    assert retried(*words) == (2, {})


@pytest.mark.parametrize(("words", "said"), [((), None), (("--resume",), True), (("--fresh",), False)])
def test_a_retry_says_whether_it_continues_only_where_it_was_asked(retried: Sent, words: tuple[str, ...], said: Any):
    assert retried(*words)[1].get("resume") is said
