"""What the portal costs on the way to an S3 server and back, against the bare `minio` client with the same parts and as
many at once; what the web process keeps of it; and what a client that is killed sends twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from minio import Minio

from tests.bench.lines import Line, interleaved, median
from tests.real.object_stores import KEYS, minio
from tests.real.portal import WHOLE, RealPortal, real_portal
from yardmaster_client import Yardmaster
from yardmaster_client.transport import Transport

MIB = 1 << 20
PARALLEL, PART = 4, 8 * MIB
LARGE_FILES, LARGE = 4, 256 * MIB
SMALL_FILES, SMALL = 10_000, 10_000
ROUNDS = 3
BUCKET, BARE = "portal", "bare"

UPLOADER = """
import sys
from pathlib import Path
from yardmaster_client import Yardmaster
from yardmaster_client.transport import Transport
from yardmaster_client.local_files import find_files
from yardmaster_client.uploads import upload
def say(line):
    sys.stdout.write(line + "\\n")  # as one piece: several threads say something
    sys.stdout.flush()
put = Transport.put_part
def noted(self, url, data, headers):
    say(f"sends {len(data)}")
    return put(self, url, data, headers)
Transport.put_part = noted
first = []
def progress(done, total):
    if not first:
        say(f"there {done}")
        first.append(done)
transport = Transport(sys.argv[1], sys.argv[2])
done = upload(transport, "dataset", find_files([Path(sys.argv[3])]), progress=progress)
say(f"complete {done}")
"""


@dataclass(frozen=True)
class Bench:
    """The portal, a client of it, and the bare client of its store."""

    portal: RealPortal
    token: str
    client: Yardmaster
    bare: Minio

    def put(self, folder: Path) -> str:
        """Through the portal; the version's id."""
        made = self.client.datasets.put(f"d{time.monotonic_ns()}", [folder]).latest
        assert made is not None
        return made.id

    def put_bare(self, folder: Path) -> str:
        """The same without it; the prefix."""
        prefix = f"d{time.monotonic_ns()}"

        def send(file: Path) -> None:
            if file.stat().st_size > PART:
                self.bare.fput_object(BARE, f"{prefix}/{file.name}", str(file), part_size=PART,
                                      num_parallel_uploads=PARALLEL)  # fmt: skip
            else:
                self.bare.fput_object(BARE, f"{prefix}/{file.name}", str(file))

        files = list(folder.iterdir())
        with ThreadPoolExecutor(PARALLEL if len(files) > LARGE_FILES else 1) as pool:
            list(pool.map(send, files))
        return prefix

    def get_bare(self, prefix: str, folder: Path) -> None:
        found = [one.object_name or "" for one in self.bare.list_objects(BARE, f"{prefix}/")]
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(lambda key: self.bare.fget_object(BARE, key, str(folder / Path(key).name)), found))


def measure() -> Iterable[Line]:
    with bench() as one, tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as home:
        large, small = Path(home, "large"), Path(home, "small")
        _fill(large, LARGE_FILES, LARGE)
        _fill(small, SMALL_FILES, SMALL)
        yield from _ways(one, large, Path(home))
        yield _ratio(one, small, f"{SMALL_FILES:,} files of {SMALL // 1000} kB up, of the bare client's speed", 0.7)
        yield from _killed(one, large)


def _ways(one: Bench, large: Path, home: Path) -> Iterator[Line]:
    web = psutil.Process(one.portal.running["web"].pid)
    before = web.memory_info().rss
    size = LARGE_FILES * LARGE
    yield _ratio(one, large, f"{size >> 30} GiB up, of the bare client's speed", 0.9)
    growth = (web.memory_info().rss - before) / (ROUNDS * size / (1 << 30))
    yield Line("... the web process grows by, per GiB", growth / MIB, "MiB", at_most=16)
    version, prefix = one.put(large), one.put_bare(large)

    def through() -> float:
        return _timed(lambda: one.client.datasets.download(version, Path(tempfile.mkdtemp(dir=home))))

    def bare() -> float:
        return _timed(lambda: one.get_bare(prefix, Path(tempfile.mkdtemp(dir=home))))

    ours, theirs = interleaved(through, bare, ROUNDS)
    note = f"{median(ours):.2f} s, bare {median(theirs):.2f} s"
    yield Line(f"{size >> 30} GiB down, of the bare client's speed", median(theirs) / median(ours), "", at_least=0.9,
               note=note)  # fmt: skip


def _ratio(one: Bench, folder: Path, name: str, goal: float) -> Line:
    ours, theirs = interleaved(
        lambda: _timed(lambda: one.put(folder)), lambda: _timed(lambda: one.put_bare(folder)), ROUNDS
    )
    note = f"{median(ours):.2f} s, bare {median(theirs):.2f} s"
    return Line(name, median(theirs) / median(ours), "", at_least=goal, note=note)


def _killed(one: Bench, folder: Path) -> Iterator[Line]:
    """A client killed half way, and the one that continues."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-c", UPLOADER, one.portal.url, one.token, str(folder)]
        told = {**os.environ, "XDG_CACHE_HOME": cache}
        first = subprocess.Popen(command, env=told, stdout=subprocess.PIPE, text=True)
        assert first.stdout is not None
        started = 0
        for line in first.stdout:
            started += int(line.split()[1]) if line.startswith("sends") else 0
            if started >= LARGE_FILES * LARGE // 2:
                break
        first.send_signal(signal.SIGKILL)
        started += sum(int(line.split()[1]) for line in first.stdout if line.startswith("sends"))
        first.wait()
        second = subprocess.run(command, env=told, stdout=subprocess.PIPE, text=True, check=True)
    said = dict(line.split() for line in second.stdout.splitlines() if not line.startswith("sends"))
    note = f"{started / MIB:.0f} MiB were begun, {int(said['there']) / MIB:.0f} MiB had arrived"
    yield Line("a client killed half way sends again", (started - int(said["there"])) / MIB, "MiB",
               at_most=PARALLEL * PART / MIB, note=note)  # fmt: skip
    Transport(one.portal.url, one.token).delete(f"uploads/{said['complete']}/")


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _fill(folder: Path, count: int, size: int) -> None:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:05}.bin").write_bytes(os.urandom(min(size, MIB)) * -(-size // MIB) if size > MIB
                                                  else os.urandom(size))  # fmt: skip


@contextmanager
def bench() -> Iterator[Bench]:
    access_key, secret_key = KEYS
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as folder,
        minio(Path(folder) / "store") as server,
        real_portal(
            Path(folder) / "home", WHOLE,
            {
                "YARDMASTER_S3_ENDPOINT": server.url, "YARDMASTER_S3_BUCKET": BUCKET,
                "YARDMASTER_S3_ACCESS_KEY": access_key, "YARDMASTER_S3_SECRET_KEY": secret_key,
            },
        ) as portal,
    ):  # fmt: skip
        portal.manage("prepare")
        bare = Minio(urlsplit(server.url).netloc, access_key, secret_key, secure=False, region="us-east-1")
        bare.make_bucket(BARE)
        token = portal.token_of("admin", is_staff=True)
        with Yardmaster(portal.url, token) as client:
            yield Bench(portal, token, client, bare)
