"""What the portal costs on the way to an S3 server and back, against the bare `minio` client with the same parts and as
many at once, in time and in processor time of all processes together; what the web process keeps of it; what a client
that is killed sends twice, and what the reaper leaves of an upload that is never continued.

The bare client does not look at what it downloads; a third comparison is with one that computes the SHA-256 of it, as
ours does."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from minio import Minio

from tests.bench.lines import Line, interleaved, median
from tests.real.object_stores import KEYS, S3Server, minio
from tests.real.portal import WHOLE, RealPortal, real_portal
from yardmaster.storage.s3_client import Endpoint, S3Client
from yardmaster.storage.s3_signing import Credentials
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
transport = Transport(sys.argv[1], sys.argv[2])
done = upload(transport, "dataset", find_files([Path(sys.argv[3])]))
say(f"complete {done}")
"""


@dataclass(frozen=True)
class Bench:
    """The portal, a client of it, and the bare client of its store."""

    portal: RealPortal
    token: str
    client: Yardmaster
    bare: Minio
    store: S3Server
    home: Path

    def processor_seconds(self) -> float:
        """Of this process, the portal's and the store's."""
        roots = [os.getpid(), self.store.process.pid, *(one.pid for one in self.portal.running.values())]
        return sum(_processor_seconds(pid) for pid in roots)

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

    def get(self, version: str) -> None:
        with self._folder() as folder:
            self.client.datasets.download(version, folder)

    def get_bare(self, prefix: str, *, looks: bool = False) -> None:
        """`looks`: computes the SHA-256 of what has come."""
        with self._folder() as folder:
            found = [one.object_name or "" for one in self.bare.list_objects(BARE, f"{prefix}/")]

            def fetch(key: str) -> None:
                place = folder / Path(key).name
                self.bare.fget_object(BARE, key, str(place))
                if looks:
                    with place.open("rb") as stream:
                        hashlib.file_digest(stream, "sha256")

            with ThreadPoolExecutor(PARALLEL) as pool:
                list(pool.map(fetch, found))

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(dir=self.home))
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def measure() -> Iterable[Line]:
    with bench() as one:
        large, small = one.home / "large", one.home / "small"
        _fill(large, LARGE_FILES, LARGE)
        _fill(small, SMALL_FILES, SMALL)
        yield from _large(one, large)
        yield from _small(one, small)
        yield from _killed(one, large)
        yield from _reaped(one, large)


def _large(one: Bench, folder: Path) -> Iterator[Line]:
    web = psutil.Process(one.portal.running["web"].pid)
    before = web.memory_info().rss
    size = LARGE_FILES * LARGE
    name = f"{size / (1 << 30):g} GiB"
    yield from _compared(one, f"{name} up", lambda: one.put(folder), lambda: one.put_bare(folder), 0.9)
    growth = (web.memory_info().rss - before) / (ROUNDS * size / (1 << 30))
    yield Line("... the web process grows by, per GiB", growth / MIB, "MiB", at_most=16)
    version, prefix = one.put(folder), one.put_bare(folder)
    yield from _compared(one, f"{name} down", lambda: one.get(version), lambda: one.get_bare(prefix), 0.9)
    looking = partial(one.get_bare, prefix, looks=True)
    yield from _compared(one, f"{name} down, SHA-256 by both", lambda: one.get(version), looking, 0.9)


def _small(one: Bench, folder: Path) -> Iterator[Line]:
    name = f"{SMALL_FILES:,} files of {SMALL // 1000} kB"
    yield from _compared(one, f"{name} up", lambda: one.put(folder), lambda: one.put_bare(folder), 0.7)
    version, prefix = one.put(folder), one.put_bare(folder)
    yield from _compared(one, f"{name} down", lambda: one.get(version), lambda: one.get_bare(prefix), 0.7)


def _compared(
    one: Bench, name: str, ours: Callable[[], object], theirs: Callable[[], object], goal: float
) -> Iterator[Line]:
    """The bare client's time and processor time as parts of ours: above 1, ours is faster."""
    spent: dict[str, list[float]] = {"ours": [], "theirs": []}

    def timed(who: str, work: Callable[[], object]) -> float:
        os.sync()  # what was sent before is still being written, at the cost of who comes next
        used, begun = one.processor_seconds(), time.perf_counter()
        work()
        taken = time.perf_counter() - begun
        spent[who].append(one.processor_seconds() - used)
        return taken

    one_way, other_way = interleaved(lambda: timed("ours", ours), lambda: timed("theirs", theirs), ROUNDS)
    note = f"{median(one_way):.2f} s, bare {median(other_way):.2f} s"
    yield Line(f"{name}, of the bare client's speed", median(other_way) / median(one_way), at_least=goal, note=note)
    mine, bare = median(spent["ours"]), median(spent["theirs"])
    yield Line("... in processor time", bare / mine, note=f"{mine:.2f} s, bare {bare:.2f} s")


def _killed(one: Bench, folder: Path) -> Iterator[Line]:
    """A client killed half way, and the one that continues."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-c", UPLOADER, one.portal.url, one.token, str(folder)]
        told = {**os.environ, "XDG_CACHE_HOME": cache}
        started = _until_half(command, told)
        second = subprocess.run(command, env=told, stdout=subprocess.PIPE, text=True, check=True)
    said = dict(line.split() for line in second.stdout.splitlines() if not line.startswith("sends"))
    more = sum(int(line.split()[1]) for line in second.stdout.splitlines() if line.startswith("sends"))
    note = f"{started / MIB:.0f} MiB were begun, and then {more / MIB:.0f} MiB of {LARGE_FILES * LARGE / MIB:.0f}"
    yield Line("a client killed half way sends again", (started + more - LARGE_FILES * LARGE) / MIB, "MiB",
               at_most=PARALLEL * PART / MIB, note=note)  # fmt: skip
    Transport(one.portal.url, one.token).delete(f"uploads/{said['complete']}/")


def _until_half(command: list[str], environment: dict[str, str]) -> int:
    """Start a client and kill it half way; the bytes of which it has begun to send the parts."""
    client = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    started = 0
    for line in client.stdout:
        started += int(line.split()[1]) if line.startswith("sends") else 0
        if started >= LARGE_FILES * LARGE // 2:
            break
    client.send_signal(signal.SIGKILL)
    started += sum(int(line.split()[1]) for line in client.stdout if line.startswith("sends"))
    client.wait()
    return started


REAPER = """
import json, sys
import django
django.setup()
from datetime import timedelta
from django.utils import timezone
from apps.uploads.models import Upload
from apps.uploads.services import uploads_sweep
open_ones = Upload.objects.filter(state="open")
keys = [f"{one.key_prefix}" for one in open_ones]
now, long_ago = timezone.now(), timezone.now() - timedelta(days=30)
open_ones.update(touched_at=long_ago)
Upload.objects.update(writable_until=long_ago)
uploads_sweep(now)
uploads_sweep(now + timedelta(hours=25))
print(json.dumps({"prefixes": keys, "rows": Upload.objects.filter(key_prefix__in=keys).count()}))
"""


def _reaped(one: Bench, folder: Path) -> Iterator[Line]:
    """What is in the store of an upload that was begun, half sent and never continued, once it has expired."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-c", UPLOADER, one.portal.url, one.token, str(folder)]
        started = _until_half(command, {**os.environ, "XDG_CACHE_HOME": cache})
    found = json.loads(one.portal.script(REAPER).splitlines()[-1])
    assert found["prefixes"], "the client had not begun"
    access_key, secret_key = KEYS
    client = S3Client(Endpoint(one.store.url), Credentials(access_key, secret_key, "us-east-1"))
    left = found["rows"]
    for prefix in found["prefixes"]:
        left += sum(1 for _ in one.bare.list_objects(BUCKET, f"{prefix}/", recursive=True))
        for file in folder.iterdir():
            key = f"{prefix}/{file.name}"
            for name, upload_id, _ in client.uploads(BUCKET, key):
                left += max(1, len(client.parts(BUCKET, name, upload_id)))
    note = f"{started / MIB:.0f} MiB were begun"
    yield Line("parts, objects and rows of an abandoned upload after the reaper", left, "", at_most=0, note=note)


def _processor_seconds(pid: int) -> float:
    total = 0.0
    root = psutil.Process(pid)
    for process in (root, *(root.children(recursive=True) if pid != os.getpid() else ())):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


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
            yield Bench(portal, token, client, bare, server, Path(folder))
