"""A task that prints a million numbered lines: against a plain loop on the same pipe, and with fifty followers."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect

from tests.bench.bench_portal import BenchPortal, bench_portal
from tests.bench.lines import Line, interleaved, median
from yardmaster_client import Job
from yardmaster_client.signed import Passing

LINES = 1_000_000
FOLLOWED = 200_000
FOLLOWERS = 50
ROUNDS = 3
SCRIPT = f"""
import sys
for number in range(int(sys.argv[-1]) if sys.argv[-1].isdigit() else {LINES}):
    print("line", number, "of a log that nobody may shorten")
"""


def measure() -> Iterable[Line]:
    with bench_portal() as portal:
        code = portal.put_script("printer", SCRIPT)
        checks: list[tuple[int, int]] = []
        bare, shipped = interleaved(_bare_rate, lambda: _shipped_rate(portal, code, checks), ROUNDS)
        yield Line("a plain loop reads the pipe line by line into a file", median(bare), "line/s")
        yield Line("the same lines through Yardmaster", median(shipped), "line/s")
        yield Line("... rate, ratio to the plain loop", median(shipped) / median(bare), "", at_least=0.5)
        yield Line("... lines missing", sum(missing for missing, _ in checks), "", at_most=0)
        yield Line("... lines doubled", sum(doubled for _, doubled in checks), "", at_most=0)
        yield from _followers(portal, code)


def _bare_rate() -> float:
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as file:
        command = [sys.executable, "-u", "-c", SCRIPT, str(LINES)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            first = child.stdout.readline()
            begun = time.monotonic()
            file.write(first)
            for line in child.stdout:
                file.write(line)
            return LINES / (time.monotonic() - begun)


def _shipped_rate(portal: BenchPortal, code: str, checks: list[tuple[int, int]]) -> float:
    """From the first line's time to the moment the portal has them all; what arrived is then counted."""
    job = _launch(portal, code, LINES)
    while _stored(portal, job) < LINES:
        time.sleep(0.05)
    ended = time.time()
    first = portal.client.transport.get(f"jobs/{job.id}/logs/lines/", role="worker", index=0, limit=1)["lines"][0]
    checks.append(_check(portal, job))
    _settle(portal, job)
    return LINES / (ended - _seconds(first["t"]))


def _launch(portal: BenchPortal, code: str, lines: int) -> Job:
    return portal.client.jobs.launch(
        {
            "name": "printer", "strategy": "single", "code": code, "entry_point": "main.py", "arguments": [str(lines)],
            "roles": {"worker": {"replicas": 1, "cpu": 0.5, "memory": "512Mi"}}, "reclaim_delay": 0,
        }
    )  # fmt: skip


def _stored(portal: BenchPortal, job: Job) -> int:
    streams = portal.client.transport.get(f"jobs/{job.id}/logs/")["streams"]
    return sum(int(stream["lines"]) for stream in streams)


def _check(portal: BenchPortal, job: Job) -> tuple[int, int]:
    """(missing, doubled) among the lines of the raw download."""
    data = bytearray()
    portal.client.transport.download(f"jobs/{job.id}/logs/raw/", Passing(data.extend), role="worker", index=0)
    numbers = [int(line.split()[1]) for line in bytes(data).splitlines() if line.startswith(b"line ")]
    return LINES - len(set(numbers)), len(numbers) - len(set(numbers))


def _settle(portal: BenchPortal, job: Job) -> None:
    while portal.client.jobs.get(job.id).cleaned_up_at is None:
        time.sleep(0.2)


def _followers(portal: BenchPortal, code: str) -> Iterable[Line]:
    """The web process's time for one follower and for fifty, in turn; and what a followed log costs beside it."""
    rows_before = _database_rows(portal)
    readers: list[int] = []
    one, many = interleaved(
        lambda: _web_time(portal, code, 1, readers), lambda: _web_time(portal, code, FOLLOWERS, readers), ROUNDS
    )
    yield Line("processor time per delivered line, 1 follower", median(one) * 1e6, "us")
    yield Line(f"processor time per delivered line, {FOLLOWERS} followers", median(many) * 1e6, "us")
    yield Line(f"... {FOLLOWERS} followers against {FOLLOWERS} times one", median(many) / median(one), "", at_most=0.2)
    yield Line("readers of the task's log while it is followed", max(readers, default=0), "", at_most=1)
    grown = (_database_rows(portal) - rows_before) / (2 * ROUNDS)
    yield Line(f"database rows per job of {FOLLOWED} lines", grown, "", at_most=200)


def _web_time(portal: BenchPortal, code: str, followers: int, readers: list[int]) -> float:
    """Seconds of the web process per line delivered to a follower."""
    web = portal.process("web")
    job = _launch(portal, code, FOLLOWED)
    before = sum(web.cpu_times()[:2])
    delivered = asyncio.run(_follow_all(portal, job, followers, readers, web))
    spent = sum(web.cpu_times()[:2]) - before
    if delivered != followers * FOLLOWED:
        raise RuntimeError(f"{followers} followers of {FOLLOWED} lines got {delivered}")
    _settle(portal, job)
    return spent / delivered


async def _follow_all(portal: BenchPortal, job: Job, followers: int, readers: list[int], web: Any) -> int:
    address = f"{portal.url.replace('http', 'ws', 1)}/ws/jobs/{job.id}/logs/?role=worker&index=0&from=0"

    async def one() -> int:
        got = 0
        async with connect(
            address, additional_headers={"Authorization": f"Bearer {portal.token}"}, max_size=1 << 24
        ) as socket:
            while got < FOLLOWED:
                message = json.loads(await socket.recv())
                got += len(message["lines"]) if message["type"] == "lines" else 0
        return got

    async def watch() -> None:
        while True:
            await asyncio.sleep(0.5)
            readers.append(sum(_is_log_of(file.path, job) for file in web.open_files() if file.mode == "r"))

    watching = asyncio.create_task(watch())
    try:
        return sum(await asyncio.gather(*(one() for _ in range(followers))))
    finally:
        watching.cancel()


def _is_log_of(path: str, job: Job) -> bool:
    return "/logs/" in path and path.endswith("/lines")


def _database_rows(portal: BenchPortal) -> int:
    with sqlite3.connect(f"file:{portal.home / 'portal.sqlite3'}?mode=ro", uri=True) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return sum(database.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0] for name in tables)


def _seconds(value: float | str) -> float:
    """The API tells times in milliseconds."""
    return float(value) / 1000
