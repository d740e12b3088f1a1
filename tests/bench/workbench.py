"""What the workbench's proxy adds to a request that takes a program 3 ms, and how fast a gibibyte comes through it."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import django
import psutil
import uvloop

from portal.demo.portal import ROOT
from tests.bench.lines import Line

REQUESTS = 1000
SIZE = 1 << 30
_BODY = b"x" * 20_000
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nDate: today\r\n\r\n"
_PROGRAM = "import django; django.setup(); from tests.bench.workbench import main; main()"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def measure() -> Iterable[Line]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    os.environ.setdefault("YARDMASTER_SECRET_KEY", "only-for-measurements-" + "x" * 40)
    django.setup()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure())


async def _measure() -> list[Line]:
    from tests.real.workbench import COOKIE  # once Django is set up
    from tests.real.workbench_server import own_process

    session_id = uuid.uuid4()
    command = [sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            direct_port, gate_port = (int(word) for word in program.stdout.readline().split())
            with own_process(gate_port, session_id) as (places, pid):
                head = (
                    f"GET /w/{session_id}/%s HTTP/1.1\r\nHost: {places.host_of(session_id)}\r\n"
                    f"Cookie: yardmaster_workbench={COOKIE}; _xsrf=2\r\nAccept: application/json\r\n"
                    f"Accept-Encoding: gzip\r\nSec-Fetch-Site: same-origin\r\nUser-Agent: {'x' * 80}\r\n\r\n"
                )
                async with _opened(direct_port) as direct, _opened(places.port) as proxied:
                    return [await _latency(direct, proxied, head), *await _throughput(proxied, head, pid)]
        finally:
            program.kill()


async def _latency(direct: Streams, proxied: Streams, head: str) -> Line:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(REQUESTS):
        for streams, taken in zip((direct, proxied), times, strict=True):
            begun = time.perf_counter()
            await _fetch(streams, head % "data")
            taken.append(time.perf_counter() - begun)
    once, through = (statistics.median(taken) for taken in times)
    note = f"{once * 1e3:.2f} ms directly, {through * 1e3:.2f} ms through the proxy"
    return Line("workbench: a request of 3 ms, against directly", through / once, "times", at_most=1.3, note=note)


async def _throughput(proxied: Streams, head: str, pid: int) -> list[Line]:
    process = psutil.Process(pid)
    before = most = process.memory_info().rss
    begun = time.perf_counter()
    fetching = asyncio.create_task(_fetch(proxied, head % "big"))
    while not fetching.done():
        most = max(most, process.memory_info().rss)
        await asyncio.wait([fetching], timeout=0.02)
    rate = fetching.result() / (time.perf_counter() - begun) / 1e6
    return [
        Line("workbench: 1 GiB through the proxy", rate, "MB/s", at_least=100.0),
        Line("workbench: memory of the proxy for it", (most - before) / 2**20, "MiB", at_most=16.0),
    ]


async def _fetch(streams: Streams, request: str) -> int:
    reader, writer = streams
    writer.write(request.encode())
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    size = left = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    while left:
        left -= len(await reader.read(min(1 << 18, left)))
    return size


@asynccontextmanager
async def _opened(port: int) -> AsyncIterator[Streams]:
    streams = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    yield streams
    streams[1].close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/big" not in head[:100]:
            await asyncio.sleep(0.003)
            writer.write(_HEAD % len(_BODY) + _BODY)
            continue
        writer.write(_HEAD % SIZE)
        piece = b"y" * (1 << 16)
        for _ in range(SIZE // len(piece)):
            writer.write(piece)
            await writer.drain()


async def _program() -> None:
    from tests.real.workbench import gate

    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    async with gate(_answer) as (_, address):
        print(server.sockets[0].getsockname()[1], address.port, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """The program, in a process of its own: with a gate and without."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_program())
