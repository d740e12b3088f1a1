"""`yardmaster sessions`, `tensorboard` and `jupyter` against a real portal, whose sessions wait in its queue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from yardmaster_client import Yardmaster

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _all_stopped(ada: Yardmaster) -> Iterator[None]:
    yield
    for one in list(ada.sessions.list()):
        ada.sessions.stop(one.id)


def test_a_jupyter_is_started_shown_extended_resized_and_stopped(yardmaster, ada: Yardmaster):
    started = yardmaster("jupyter", "--size", "small", "--for", "2h", "--no-wait")
    assert started.code == 0, started.err
    session = next(one for one in ada.sessions.list() if one.kind == "jupyter")
    assert started.out.strip() == f"{ada.transport.url}/sessions/{session.id}/open/"
    assert (session.name, session.size, session.idle_limit) == ("Jupyter of ada", "small", 7200)
    assert session.runs
    shown = yardmaster("sessions", "show", session.id, "--json").json
    assert (shown["id"], shown["kind"]) == (session.id, "jupyter")
    assert "Jupyter of ada" in yardmaster("sessions", "show", "Jupyter of ada").out
    assert session.id in yardmaster("sessions", "list").out
    assert [one["id"] for one in yardmaster("sessions", "list", "--kind", "jupyter", "--json").json] == [session.id]
    extended = yardmaster("sessions", "extend", "Jupyter of ada", "--for", "90m").err
    assert "stops after 1h 30m without use" in extended
    restarted = yardmaster("sessions", "restart", session.id, "--size", "large", "--no-wait")
    assert restarted.code == 0, restarted.err
    again = ada.sessions.get(session.id)
    assert again.restarts or again.size == "large"
    refused = yardmaster("sessions", "delete-files", session.id, "--yes")
    assert (refused.code, "not stopped" in refused.err) == (1, True)
    assert yardmaster("sessions", "stop", session.id).code == 0
    assert not ada.sessions.get(session.id).runs


def test_a_tensorboard_of_jobs_is_the_same_for_the_same_jobs(yardmaster, ada: Yardmaster, job_file: Path, script: Path):
    assert yardmaster("code", "upload", script, "--name", "training").code == 0
    for name in ("one", "two"):
        assert yardmaster("jobs", "launch", job_file, "--set", f"name={name}").code == 0
    started = yardmaster("tensorboard", "one", "two", "--no-wait", "--json")
    assert started.code == 0, started.err
    found = started.json
    assert found["name"] == "TensorBoard of two and 1 more"
    assert len(found["jobs"]) == 2
    assert yardmaster("sessions", "start", "tensorboard", "two", "one", "--no-wait", "--json").json["id"] == found["id"]
    assert yardmaster("tensorboard", "--no-wait", "--json").json["name"] == "TensorBoard of ada"


def test_waiting_in_vain_says_why_and_exits_with_one(yardmaster, ada: Yardmaster):
    session = ada.sessions.start("tensorboard")
    ada.sessions.stop(session.id)
    opened = yardmaster("sessions", "open", session.id, "--no-open")
    assert opened.code == 1
    assert "TensorBoard of ada: stop" in opened.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("jupyter", "--size", "enormous"), 1, "small, medium, large"),
        (("jupyter", "--spark-executors", "1", "--spark-cores", "2"), 1, "share its cores and memory"),
        (("jupyter", "--spark-executors", "1", "--spark-memory", "much"), 1, "spark_memory"),
        (("jupyter", "--for", "soon"), 2, "Write a duration such as 30m"),
        (("jupyter", "--for", "1s"), 1, "The idle limit is between"),
        (("tensorboard", "no such job"), 1, "There is no job"),
        (("sessions", "show", "no such session"), 1, "There is no session"),
        (("sessions", "start", "shell"), 2, "shell"),
    ],
)
def test_what_is_wrong_is_said_with_what_helps(yardmaster, arguments, code, words):
    found = yardmaster(*arguments)
    assert found.code == code
    assert words in found.err


def test_sizes_are_told_to_programs(ada: Yardmaster):
    assert next((one.name, one.memory) for one in ada.sessions.sizes()) == ("small", 1 << 30)
