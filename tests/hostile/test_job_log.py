"""What tasks print, however much and however fast: kept while the portal is there, counted where it is dropped."""

from __future__ import annotations

import contextlib
import gzip
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.hostile.conftest import http
from tests.real.files import files_below, size_of
from tests.real.scene import Scene, scene, until
from yardmaster_client import Job

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

MIB = 1 << 20


def printer(mebibytes: int, before: str = "", after: str = "") -> str:
    """A script that prints so many MiB of numbered lines of 1 KiB, as fast as it can."""
    return (
        f"import os, time\n{before}\n"
        f"for number in range({mebibytes}):\n"
        "    block = b''.join(b'%07d ' % (number * 1024 + n) + b'.' * 1015 + b'\\n' for n in range(1024))\n"
        "    view = memoryview(block)\n"
        "    while view:\n        view = view[os.write(1, view):]\n"
        f"{after}\n"
    )


# --- while the portal is there, however slowly ---------------------------------------------------------------------


@pytest.mark.long
def test_a_portal_that_is_held_up_again_and_again_costs_no_line(attacked: Scene):
    """As on a machine that is far too busy: the web process runs for a second out of eight."""
    job = attacked.launch(printer(200))
    until(lambda: attacked.portal_has_line(job, "worker", 0), what="the first line")
    web = attacked.portal.running["web"]
    for _ in range(3):
        web.send_signal(signal.SIGSTOP)
        time.sleep(7)
        web.send_signal(signal.SIGCONT)
        time.sleep(1)
    job = attacked.settled(job, 120)
    assert job.phase == "SUCCEEDED", job.message
    (stream,) = attacked.client.jobs.streams(job.id)
    assert (stream["lines"], stream["bytes"], stream["gaps"]) == (200 * 1024, 200 * MIB, [])


@pytest.fixture
def impatient(attacked: Scene) -> Iterator[Scene]:
    """Its tasks wait two seconds for a portal that does not answer."""
    environment = attacked.portal.environment
    environment["YARDMASTER_LOG_WAIT"] = "2"
    attacked.portal.kill("web")
    attacked.portal.start("web")
    yield attacked
    del environment["YARDMASTER_LOG_WAIT"]
    attacked.portal.kill("web")
    attacked.portal.start("web")


def test_a_portal_that_is_away_costs_lines_that_are_marked_and_counted(impatient: Scene):
    go, done = impatient.traces / "go", impatient.traces / "done"
    wait = f"print('first', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.1)"
    job = impatient.launch(printer(160, wait, f"open({str(done)!r}, 'w')"))
    until(lambda: impatient.portal_has_line(job, "worker", 0), what="the first line")
    impatient.portal.kill("web")
    go.touch()
    until(done.exists, 120, "the script's end")
    impatient.portal.start("web")
    job = impatient.settled(job, 120)
    assert job.phase == "SUCCEEDED", job.message
    (stream,) = impatient.client.jobs.streams(job.id)
    lost = stream["gaps"]
    assert lost
    assert stream["lines"] == 160 * 1024 + 1
    assert sum(gap["bytes"] for gap in lost) == 160 * MIB + len("first\n") - stream["bytes"]
    assert impatient.lines(job, start=-1)[0].startswith(f"{160 * 1024 - 1:07}")


# --- past the bounds ------------------------------------------------------------------------------------------------

LIMIT = 2 * MIB
OF_NAMESPACE = 3 * MIB


@pytest.fixture(scope="module")
def small() -> Iterator[Scene]:
    """An attempt's log holds 2 MiB there, those of a namespace 3 MiB."""
    settings = {"YARDMASTER_LOG_LIMIT": "2Mi", "YARDMASTER_LOG_LIMIT_NAMESPACE": "3Mi"}
    with scene(settings=settings) as one:
        yield one


def log_bytes(one: Scene) -> int:
    """What the namespaces are charged for logs."""
    rows = one.ask("SELECT logs, used FROM uploads_storageaccount")
    assert all(logs <= used for logs, used in rows)
    return sum(logs for logs, _ in rows)


def on_disk(one: Scene) -> int:
    return sum(map(size_of, files_below(one.portal.home / "logs")))


def forget(one: Scene, job: Job) -> None:
    one.client.jobs.delete(job.id)
    until(lambda: not one.ask("SELECT 1 FROM jobs_job WHERE id = ?", job.id.replace("-", "")), what="the removal")


def test_past_its_limit_a_log_counts_what_it_drops_and_keeps_the_last_words(small: Scene):
    """The script is not held up, its verdict is its own, and why it failed can still be read."""
    job = small.launch(printer(40, after="raise RuntimeError('the very last words')"))
    job = small.settled(job, 120)
    assert (job.phase, job.reason) == ("FAILED", "ScriptFailed")
    (stream,) = small.client.jobs.streams(job.id)
    assert LIMIT // 2 < stream["bytes"] < LIMIT + MIB // 2
    (gap,) = stream["gaps"]
    assert gap["cause"] == "log_limit"
    assert "2 MiB" in gap["detail"]
    assert "YARDMASTER_LOG_LIMIT" in gap["detail"]
    lines = stream["lines"] - gap["lines"]
    assert stream["lines"] >= 40 * 1024 + 3
    assert gap["bytes"] == gap["lines"] * 1024
    assert lines * 1024 >= stream["bytes"] > (lines - 10) * 1024
    assert small.lines(job, start=-1) == ["RuntimeError: the very last words"]
    assert "the very last words" in "".join(small.client.jobs.why(job.id)["last_lines"])
    shown = small.command("jobs", "logs", job.id)
    assert f"{gap['lines']} lines dropped: log limit of 2 MiB per attempt reached" in shown.stdout + shown.stderr
    assert log_bytes(small) == pytest.approx(stream["bytes"], rel=0.1)
    forget(small, job)
    assert log_bytes(small) == 0


class Task:
    """A hostile tenant's own client with the token of one of their jobs."""

    def __init__(self, one: Scene, job: Job) -> None:
        code = (
            "import django, sys, uuid; django.setup(); from apps.jobs.state.task_auth import token_of;"
            "print(token_of(uuid.UUID(sys.argv[1]), 1))"
        )
        self.job = job
        self.client = http(one.portal.url, one.portal.script(code, job.id).strip())

    def lines(self, body: bytes, role: str = "worker", index: int = 0, **query: Any) -> httpx2.Response:
        headers = {"Content-Type": "application/octet-stream"}
        if body[:2] == b"\x1f\x8b":
            headers["Content-Encoding"] = "gzip"
        return self.client.post(
            "/api/v1/task/log/", params={"role": role, "index": index, **query}, content=body, headers=headers
        )

    def gap(self, first_line: int, writer: int = 1) -> httpx2.Response:
        where = {"role": "worker", "index": 0, "first_line": first_line, "writer": writer}
        return self.client.post("/api/v1/task/log/gap/", params=where, json={"lines": 1, "bytes": 1})

    def end(self, lines: int) -> httpx2.Response:
        return self.client.post("/api/v1/task/log/end/", params={"role": "worker", "index": 0, "lines": lines})

    def next_line(self) -> int:
        return int(self.client.get("/api/v1/task/log/", params={"role": "worker", "index": 0}).json()["next_line"])


@pytest.fixture
def idle(small: Scene) -> Iterator[Task]:
    """The task of a job that runs and prints nothing. Its runner has its orders: it would take lines that were there
    before them for those of an earlier start that was killed, and say so in the log."""
    job = small.launch("import time\ntime.sleep(600)\n")
    until(lambda: [one["state"] for one in small.client.jobs.tasks(job.id)] == ["running"], what="the script")
    task = Task(small, job)
    with task.client:
        yield task
    small.client.jobs.stop(job.id)
    small.settled(job)
    forget(small, job)


def test_a_stream_of_a_task_that_the_job_does_not_have_is_refused(small: Scene, idle: Task):
    before = on_disk(small)
    for role, index in (("worker", 1), ("worker", 9999), ("ps", 0), ("chief", 0)):
        where = {"role": role, "index": index, "first_line": 0}
        gap = idle.client.post("/api/v1/task/log/gap/", params=where, json={"lines": 1, "bytes": 1})
        end = idle.client.post("/api/v1/task/log/end/", params={**where, "lines": 0})
        for path, answer in (
            ("log/", idle.lines(b"x\n", role, index, first_line=0, lines=1)),
            ("gap", gap),
            ("end", end),
        ):
            assert (answer.status_code, answer.json()["code"]) == (404, "unknown_task"), (role, index, path)
    assert on_disk(small) == before


def test_what_is_packed_counts_as_what_it_unpacks_to_and_whatever_is_sent_the_disk_is_bounded(small: Scene, idle: Task):
    """A few KiB of gzip a time, single lines with a mark each, gaps and ends: nothing grows past the bound."""
    bomb = gzip.compress((b"x" * 1023 + b"\n") * 4096)
    assert len(bomb) < 32 << 10
    answers = []
    for _ in range(10):
        first = idle.next_line()
        answers.append(idle.lines(bomb, first_line=first, lines=4096).json())
    assert answers[-1]["full"]["cause"] == "log_limit"
    marks = {"X-Times": ",".join(f"{n}:{n * 20}" for n in range(4000))}
    for tail in (-1, 0, 1):
        for _ in range(20):
            query = {"role": "worker", "index": 0, "first_line": idle.next_line(), "lines": 4000, "tail": tail}
            idle.client.post("/api/v1/task/log/", params=query, content=b"\n" * 4000, headers=marks)
    settled = on_disk(small)
    for _ in range(60):
        first = idle.next_line()
        gap = {"role": "worker", "index": 0, "first_line": first, "writer": first % 7 + 1}
        idle.client.post("/api/v1/task/log/gap/", params=gap, json={"lines": 1, "bytes": 1})
        idle.lines(b"y\n" * 10, first_line=first + 1, lines=10)
    assert on_disk(small) <= settled + 1024
    assert on_disk(small) < LIMIT + MIB
    (stream,) = small.client.jobs.streams(idle.job.id)
    assert stream["lines"] == idle.next_line()


def test_marks_without_a_line_are_charged_merged_and_bounded(small: Scene, idle: Task):
    """Gaps alone, by several writers; then gaps and ends in turn in a log that is full."""
    before = on_disk(small)
    for number in range(120):
        assert idle.gap(number, writer=number % 3 + 1).json() == {"next_line": number + 1}
    assert on_disk(small) <= before + 1024
    assert log_bytes(small) > 0
    page = small.client.transport.get(f"jobs/{idle.job.id}/logs/lines/", role="worker", index=0, **{"from": 0})
    assert (page["next"], [(gap["first_line"], gap["lines"]) for gap in page["gaps"]]) == (120, [(0, 120)])
    while "full" not in idle.lines(b"x" * 1023 + b"\n", first_line=idle.next_line(), lines=1, tail=0).json():
        idle.lines(gzip.compress((b"x" * 1023 + b"\n") * 1000), first_line=idle.next_line(), lines=1000)
    settled, first = on_disk(small), idle.next_line()
    for line in range(first, first + 400):
        assert idle.gap(line).json()["full"]["cause"] == "log_limit"
        assert idle.end(line + 1).json() == {"next_line": line + 1}
    assert on_disk(small) <= settled + 34 * 1024
    assert on_disk(small) < LIMIT + MIB


def test_bodies_that_are_slow_to_unpack_hold_up_nobody_else(small: Scene, idle: Task):
    """A few KiB that unpack to 8 MiB of empty lines, and a wrong number of them, from many threads."""
    bomb, stop, statuses = gzip.compress(b"\n" * (8 * MIB)), threading.Event(), Counter[int]()
    assert len(bomb) < 16 << 10
    code = small.put_code({"main.py": "print('small')\n"}, "small")

    def send() -> None:
        while not stop.is_set():
            answer = idle.lines(bomb, first_line=0, lines=1)
            statuses[answer.status_code] += 1
            if answer.status_code == 429:
                assert (answer.json()["code"], answer.headers["Retry-After"]) == ("too_many_at_once", "1")

    with ThreadPoolExecutor(64) as pool, contextlib.ExitStack() as at_the_end:
        at_the_end.callback(stop.set)
        sending = [pool.submit(send) for _ in range(64)]
        until(lambda: statuses[429] > 0, what="a write that has to wait")
        for name in ("anna", "boris"):
            with http(small.portal.url, small.portal.token_of(name)) as other:
                assert other.get("/api/v1/me/").json()["username"] == name
        with http(small.portal.url, small.token) as reader:
            file = reader.get(f"/api/v1/code-versions/{code}/files/content/", params={"path": "main.py"})
            assert "small" in file.text or file.status_code in (302, 307)
        stop.set()
        for one in sending:
            one.result()
    assert set(statuses) == {400, 429}
    assert idle.lines(b"a\n", first_line=0, lines=1).json()["next_line"] == 1


def test_a_namespace_s_logs_are_bounded_and_a_deleted_job_gives_its_part_back(small: Scene):
    jobs = [small.settled(small.launch(printer(4)), 120) for _ in range(3)]
    streams = [small.client.jobs.streams(job.id)[0] for job in jobs]
    assert all(job.phase == "SUCCEEDED" for job in jobs)
    assert [stream["gaps"][0]["cause"] for stream in streams] == ["log_limit", "log_limit", "namespace_limit"]
    assert "3 MiB" in streams[2]["gaps"][0]["detail"]
    assert all(stream["lines"] == 4096 for stream in streams)
    assert log_bytes(small) < OF_NAMESPACE + MIB
    for job in jobs:
        forget(small, job)
    assert log_bytes(small) == 0
    job = small.settled(small.launch(printer(1)), 120)
    assert small.client.jobs.streams(job.id)[0]["gaps"] == []
    forget(small, job)


def test_logs_count_against_the_quota_of_storage(small: Scene):
    namespaces = {one["slug"]: one["id"] for one in small.client.transport.get("namespaces/")["results"]}
    namespace = namespaces["admin"]  # of all that there are
    used = small.client.transport.get(f"namespaces/{namespace}/quota/")["used"]["storage"]
    small.portal.script(
        "import django, sys; django.setup(); from apps.namespaces.models import Quota;"
        "Quota.objects.update_or_create(namespace_id=sys.argv[1], defaults={'storage': int(sys.argv[2])})",
        namespace,
        str(int(used) + MIB // 2),
    )
    job = small.settled(small.launch(printer(4)), 120)
    (stream,) = small.client.jobs.streams(job.id)
    assert (job.phase, stream["gaps"][0]["cause"]) == ("SUCCEEDED", "storage_quota")
    assert stream["bytes"] < MIB
    assert stream["lines"] == 4096
    quota = small.client.transport.get(f"namespaces/{namespace}/quota/")
    assert quota["logs"] >= stream["bytes"]
    assert quota["used"]["storage"] >= used + quota["logs"]
    forget(small, job)
    assert small.client.transport.get(f"namespaces/{namespace}/quota/")["logs"] == 0
