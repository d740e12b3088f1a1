"""Examples per second that a script gets from shards on an S3 server, against the same shards on its disk; and what
fetching several at a time is worth where each request takes its time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NoReturn

from portal.env import task_python
from tests.bench.lines import Line, interleaved, median
from tests.real.object_stores import minio
from yardmaster.storage.s3 import S3Storage
from yardmaster_runner.data.inputs import Input
from yardmaster_runner.data.passes import Passes
from yardmaster_runner.data_service import DataService
from yardmaster_runner.http_hosts import Hosts
from yardmaster_runner.order import Bundle, RemoteFile
from yardmaster_runner.shard_fetching import ShardFetching
from yardmaster_runner.shard_folder import ShardFolder
from yardmaster_runner.stage import Stager

SHARDS, RECORDS, ROUNDS = 40, 500, 4
SMALL_SHARDS, SMALL, LATENCY = 96, 16_000, 0.02
PLATFORM = Path(__file__).resolve().parents[2] / "platform"


@dataclass
class Script:
    """A script that has imported TensorFlow, and times passes over datasets."""

    process: subprocess.Popen[str]

    def timed(self, name: str) -> float:
        """Seconds of one pass."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline().split()[1])


@contextmanager
def script(environment: dict[str, str], *arguments: object) -> Iterator[Script]:
    command = [task_python(), str(Path(__file__).with_name("reading_child.py")), *map(str, arguments)]
    told = {**os.environ, "PYTHONPATH": str(PLATFORM), **environment}
    process = subprocess.Popen(command, env=told, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        while process.stdout.readline().strip() != "ready":
            assert process.poll() is None, "the script has ended"
        yield Script(process)
    finally:
        process.kill()
        process.wait()


def measure() -> Iterable[Line]:
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as folder:
        yield from _from_store(Path(folder))
        yield _several_at_a_time(Path(folder))


def _from_store(top: Path) -> Iterator[Line]:
    local = top / "local"
    with script({}, local, SHARDS, RECORDS), minio(top / "store") as server:
        storage = S3Storage(**server.options())
        storage.prepare()
        files = [_put(storage, local, path) for path in sorted(local.glob("train/*"))]
        service = _service(top, Bundle("v1", "pictures", tuple(files), is_streamed=True), local)
        with script({"YARDMASTER_DATA": str(top / "inputs.json")}) as one:

            def first() -> float:
                shutil.rmtree(top / "cache" / "v1", ignore_errors=True)
                return one.timed("pictures")

            one.timed(str(local))  # TensorFlow is slower the first time, whatever it reads
            streamed, plain = interleaved(first, lambda: one.timed(str(local)), ROUNDS)
            kept, again = interleaved(lambda: one.timed("pictures"), lambda: one.timed(str(local)), ROUNDS)
        service.close()
    size = sum(file.size for file in files) / (1 << 20)
    rates = [SHARDS * RECORDS / median(one) for one in (streamed, plain)]
    note = f"{rates[0]:,.0f} against {rates[1]:,.0f} per s, {size:.0f} MiB"
    yield Line("examples per second from MinIO, of those from the disk", median(plain) / median(streamed), "",
               at_least=0.8, note=note)  # fmt: skip
    yield Line("... second epoch", median(again) / median(kept), "", at_least=0.95)


def _put(storage: S3Storage, top: Path, path: Path) -> RemoteFile:
    key = str(path.relative_to(top))
    storage.put(key, path.read_bytes())
    return RemoteFile(key, path.stat().st_size, "", storage.read_url(key, timedelta(minutes=15)))


def _service(top: Path, bundle: Bundle, described: Path, threads: int = 8) -> DataService:
    data = top / "data"
    data.mkdir(exist_ok=True)
    if (described / "dataset.json").exists():
        shutil.copy(described / "dataset.json", data)
    folder = ShardFolder(str(top / "cache"), 10 << 30)
    stager = Stager(Hosts(), str(top / "cache"), _asks_again, _asks_again)
    service = DataService(str(top), [bundle], folder, ShardFetching(folder, stager.fetch, threads))
    one = {"name": bundle.name, "dataset": "", "folder": str(data), "mode": "stream", "share": "all"}
    said = {"socket": service.address, "stream_bytes": 10 << 30, "part": None, "inputs": [one]}
    (top / "inputs.json").write_text(json.dumps(said))
    return service


def _asks_again(*_: object) -> NoReturn:
    raise AssertionError("the first addresses and the first page of files are enough here")


class _Slow(BaseHTTPRequestHandler):
    """Answers each request after a while, as a store in another city does."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        time.sleep(LATENCY)
        self.send_response(200)
        self.send_header("Content-Length", str(SMALL))
        self.end_headers()
        self.wfile.write(b"x" * SMALL)

    def log_message(self, *_: object) -> None:
        return


def _several_at_a_time(top: Path) -> Line:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    files = tuple(RemoteFile(f"{number}.tfrecord", SMALL, "", f"{url}/{number}") for number in range(SMALL_SHARDS))

    def timed(threads: int) -> float:
        with tempfile.TemporaryDirectory(dir=top) as folder:
            service = _service(Path(folder), Bundle("v1", "small", files, is_streamed=True), top, threads)
            found = Input("small", "", folder, is_streamed=True, socket=service.address)
            passes = Passes(found, [file.path for file in files], shuffle=False, seed=None)
            begun = time.perf_counter()
            for number, shard in passes.one():
                passes.get(number, shard)
                passes.release(number, shard)
            seconds = time.perf_counter() - begun
            service.close()
        return seconds

    eight, alone = interleaved(lambda: timed(8), lambda: timed(1), 3)
    server.shutdown()
    note = f"{SMALL_SHARDS} shards in {median(eight):.2f} s, one at a time in {median(alone):.2f} s"
    return Line("20 ms per request: speed of 8 at a time, times one", median(alone) / median(eight), "", at_least=6,
                note=note)  # fmt: skip
