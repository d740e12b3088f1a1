"""What the way through the portal costs a session: requests of TensorBoard, a large download, idle WebSockets, another
session that stalls, and the time until a session can be used."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import httpx2
import psutil
from websockets.asyncio.client import connect

from tests.bench.lines import Line, interleaved, median
from tests.browser.world import World, world
from tests.real.opened import Opened, opened, signed_in, socket_of
from tests.real.portal import ROOT
from tests.real.scene import until

TASKS, NOTEBOOKS = ROOT / ".venv-tasks/bin/python", ROOT / ".venv-workbench/bin/python"
ROUNDS = 7
ASKED = 30
SOCKETS = 200
LARGE = 1 << 30
STARTS = 5
BEFORE = 0.5
"""Seconds between the requests that wait for a program that stalls and those that are measured."""
WRITE = """
import os
import tensorflow as tf

with tf.summary.create_file_writer(os.environ["LOG_DIR"] + "/train").as_default():
    for step in range(1000):
        for curve in range(20):
            tf.summary.scalar(f"curve-{curve}", 1.0 / (step + 1), step=step)
"""


def measure() -> Iterable[Line]:
    with world(trained=False) as full:
        sign_in = signed_in(full.url, "ada")
        job = _written(full)
        board = _session(full, sign_in, kind="tensorboard", jobs=[job])
        yield from _requests(full, board)
        other = _session(full, sign_in, kind="tensorboard")
        yield from _stall(board, other)
        _stop(full, other.session)
        yield from _starts(full, sign_in)
        _stop(full, board.session)
        notebooks = _session(full, sign_in, kind="jupyter", size="small")
        yield from _download(full, notebooks)
        yield from _idle_sockets(full, sign_in, notebooks)
        _stop(full, notebooks.session)


def _written(full: World) -> str:
    """A job that has written event files: 20 curves of 1,000 steps."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.py").write_text(WRITE)
        version = full.client.code.put("events", [Path(folder)]).latest
    assert version is not None
    spec = {
        "name": "events", "strategy": "single", "roles": {"worker": {"cpu": 0.1, "memory": "2Gi"}}, "code": version.id,
        "entry_point": "main.py", "paths": {"data_flag": "", "log_flag": ""}, "retries": 0, "reclaim_delay": 0,
    }  # fmt: skip
    job = full.client.jobs.wait(full.client.jobs.launch(spec).id, timeout=300)
    if job.phase != "SUCCEEDED":
        raise RuntimeError(f"the event files were not written: {job.message}")
    until(lambda: full.client.jobs.get(job.id).cleaned_up_at, 90, "the job to be cleaned up")
    return job.id


def _session(full: World, sign_in: str, **wanted: object) -> Opened:
    found = full.client.transport.post("sessions/", wanted)
    _ready(full, found["id"])
    return opened(full.url, sign_in, found["id"])


def _ready(full: World, session: str) -> None:
    transport = full.client.transport
    until(lambda: transport.get(f"sessions/{session}/")["state"] == "ready", 120, "the session to be ready")


def _stop(full: World, session: str) -> None:
    transport = full.client.transport
    transport.post(f"sessions/{session}/stop/", {})
    until(lambda: transport.get(f"sessions/{session}/")["state"] == "stopped", 60, "the session to stop")


def _requests(full: World, board: Opened) -> Iterable[Line]:
    """The same requests through the portal, at the unix socket on which the session's program listens, and at a
    TensorBoard that was started by hand on the same files."""
    transport = httpx2.HTTPTransport(uds=str(socket_of(board.session)))
    with (
        _by_hand(_command("tensorboard", full)) as port,
        board.client() as proxied,
        httpx2.Client(transport=transport, base_url=f"http://localhost{board.prefix}", timeout=60) as direct,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as by_hand,
    ):
        until(lambda: _answers(f"http://127.0.0.1:{port}/data/runs"), 60, "TensorBoard to answer")
        until(lambda: proxied.get("data/runs").json() and by_hand.get("data/runs").json(), 60, "the runs to be read")
        for name, path in (
            ("scalars", "data/plugin/scalars/scalars?run={run}&tag=curve-0"),
            ("tags", "data/plugin/scalars/tags"),
            ("runs", "data/runs"),
        ):
            asked = [_asking(client, path) for client in (direct, by_hand, proxied)]
            alone, through = interleaved(asked[0], asked[2], ROUNDS)
            yield Line(f"TensorBoard, {name}: at the session's own socket", median(alone) * 1000, "ms")
            yield Line("... through the portal, ratio", median(through) / median(alone), "", at_most=1.3)
            alone, through = interleaved(asked[1], asked[2], ROUNDS)
            yield Line("... ratio to a TensorBoard started by hand", median(through) / median(alone), "", at_most=1.3,
                       note=f"{median(alone) * 1000:.3g} ms by hand")  # fmt: skip


def _asking(client: httpx2.Client, path: str) -> Callable[[], float]:
    asked = path.format(run=client.get("data/runs").json()[0])
    return lambda: _time(client, asked)


def _time(client: httpx2.Client, path: str) -> float:
    times = []
    for _ in range(ASKED):
        begun = time.perf_counter()
        client.get(path).raise_for_status()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def _stall(stalled: Opened, other: Opened) -> Iterable[Line]:
    """Requests to one session while another's program does not run, and twenty requests wait for it."""
    program = _program_of(stalled.session)

    def beside_stalled() -> float:
        program.send_signal(signal.SIGSTOP)
        try:
            waiting = [threading.Thread(target=_ask, args=(stalled,), daemon=True) for _ in range(20)]
            for one in waiting:
                one.start()
            time.sleep(BEFORE)
            with other.client() as client:
                return _time(client, "data/runs")
        finally:
            program.send_signal(signal.SIGCONT)
            for one in waiting:
                one.join(60)

    def alone() -> float:
        time.sleep(BEFORE)  # a machine that was idle answers later, whether or not another session stalls
        with other.client() as client:
            return _time(client, "data/runs")

    well, beside = interleaved(alone, beside_stalled, ROUNDS)
    yield Line("a session beside one that stalls, ratio", median(beside) / median(well), "", at_most=1.2)


def _ask(board: Opened) -> None:
    with board.client() as client, contextlib.suppress(httpx2.HTTPError):
        client.get("data/runs")


def _program_of(session: str) -> psutil.Process:
    place = str(socket_of(session))
    found = [one for one in psutil.process_iter() if place in _told(one).get("YARDMASTER_SERVICE_SOCKET", "")]
    return found[0]


def _told(process: psutil.Process) -> dict[str, str]:
    try:
        return dict(process.environ())
    except psutil.Error:
        return {}


def _starts(full: World, sign_in: str) -> Iterable[Line]:
    """Until a session answers through the portal, and until the same program answers that was started by hand."""
    for kind, wanted in (("tensorboard", {"kind": "tensorboard"}), ("jupyter", {"kind": "jupyter", "size": "small"})):
        path = "api" if kind == "jupyter" else "data/runs"
        command = _command(kind, full)
        by_hand, through = interleaved(
            lambda command=command, path=path: _start_by_hand(command, path),
            lambda wanted=wanted, path=path: _start_at_the_portal(full, sign_in, wanted, path),
            STARTS,
        )
        yield Line(f"{kind}: started by hand, until it answers", median(by_hand), "s")
        yield Line("... at the portal, ratio", median(through) / median(by_hand), "", at_most=1.2)


def _command(kind: str, full: World) -> list[str]:
    """What starts the program by hand, with `{port}` for its port."""
    if kind == "jupyter":
        command = [str(NOTEBOOKS), "-m", "jupyterlab", "--no-browser", "--allow-root", "--IdentityProvider.token="]
        return [*command, "--ServerApp.port={port}", f"--ServerApp.root_dir={tempfile.gettempdir()}"]
    events = next(Path(full.portal.home, "local", "runs").glob("*/tasks/worker-0/work/data/events-*"))
    return [str(TASKS), "-m", "tensorboard.main", f"--logdir={events}", "--port={port}", "--load_fast=false"]


def _start_by_hand(command: list[str], path: str) -> float:
    begun = time.perf_counter()
    with _by_hand(command) as port:
        while not _answers(f"http://127.0.0.1:{port}/{path}"):
            time.sleep(0.02)
        return time.perf_counter() - begun


@contextlib.contextmanager
def _by_hand(command: list[str]) -> Iterator[int]:
    """The program, which may not answer yet; its port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    words = [one.format(port=port) for one in command]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_clean())
    try:
        yield port
    finally:
        process.terminate()
        process.wait()


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _start_at_the_portal(full: World, sign_in: str, wanted: dict[str, str], path: str) -> float:
    begun = time.perf_counter()
    session = full.client.transport.post("sessions/", wanted)["id"]
    _ready(full, session)
    with opened(full.url, sign_in, session).client() as client:
        client.get(path).raise_for_status()
    took = time.perf_counter() - begun
    _stop(full, session)
    return took


def _download(full: World, notebooks: Opened) -> Iterable[Line]:
    """A file of 1 GiB from Jupyter's files; the web process's memory is looked at every 10 ms."""
    home = next(Path(full.portal.home, "local", "workbench").glob("*/*"))
    with (home / "large.bin").open("wb") as file:
        file.truncate(LARGE)
    web = psutil.Process(full.portal.running["web"].pid)
    with notebooks.client() as client:
        _read(client, 64 << 20)
        before = web.memory_info().rss
        with _highest(lambda: web.memory_info().rss) as seen:
            begun = time.perf_counter()
            size = _read(client, LARGE)
            took = time.perf_counter() - begun
    (home / "large.bin").unlink()
    if size != LARGE:
        raise RuntimeError(f"the download had {size} bytes")
    yield Line("a download of 1 GiB from a session", LARGE / took / 1e6, "MB/s")
    yield Line("... more memory of the web process", (max(seen) - before) / 2**20, "MiB", at_most=16.0)


def _read(client: httpx2.Client, most: int) -> int:
    size = 0
    # Jupyter gives files to its own pages alone.
    with client.stream("GET", "files/large.bin", headers={"Referer": f"http://{client.headers['Host']}/"}) as answer:
        answer.raise_for_status()
        for piece in answer.iter_raw(1 << 20):
            size += len(piece)
            if size >= most:
                break
    return size


@contextlib.contextmanager
def _highest(look: Callable[[], int]) -> Iterator[list[int]]:
    seen, ended = [look()], threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            seen.append(look())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def _idle_sockets(full: World, sign_in: str, notebooks: Opened) -> Iterable[Line]:
    """Times of a page of the portal, alone and beside 200 WebSockets of a session that say nothing."""
    with httpx2.Client(base_url=full.url, headers={"Cookie": sign_in}, timeout=60) as client:
        alone, beside = interleaved(
            lambda: _time(client, "/jobs/"),
            lambda: asyncio.run(_beside_sockets(notebooks, lambda: _time(client, "/jobs/"))),
            ROUNDS,
        )
    yield Line(f"a page beside {SOCKETS} idle WebSockets of a session, ratio", median(beside) / median(alone), "",
               at_most=1.2)  # fmt: skip


async def _beside_sockets(notebooks: Opened, measured: Callable[[], float]) -> float:
    port = notebooks.at.rpartition(":")[2]
    address = f"ws://{notebooks.host}{notebooks.prefix}api/events/subscribe"
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(SOCKETS // 20):
            some = (
                connect(
                    address, host="127.0.0.1", port=int(port), origin=f"http://{notebooks.host}",
                    additional_headers={"Cookie": notebooks.cookie}, compression=None, proxy=None,
                )
                for _ in range(20)
            )  # fmt: skip
            for one in await asyncio.gather(*some):
                stack.push_async_callback(one.close)
        await asyncio.sleep(1)
        return await asyncio.to_thread(measured)
