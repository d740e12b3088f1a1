"""The same data read by the same script: copied from MinIO to the disk of the task, streamed from there, in place on
the data volume, and written to its disk by the script itself: how long until the script begins, and how fast it reads,
the first time and again.

Needs a StorageClass with ReadWriteMany, named by `YARDMASTER_TEST_VOLUME_CLASS` (the development cluster's is `shared`:
a folder of its one node, so that its figures are those of a disk and of no network).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.bench_portal import BenchPortal
from tests.bench.cluster.ground import ground, portal_on
from tests.bench.lines import Line, median
from tests.real.object_stores import minio
from yardmaster_client.models import LogLine

ROUNDS = int(os.environ.get("YARDMASTER_BENCH_ROUNDS", "5"))
MEGABYTES = int(os.environ.get("YARDMASTER_BENCH_MEGABYTES", "256"))
SMALL_FILES = int(os.environ.get("YARDMASTER_BENCH_FILES", "2000"))
CLASS = os.environ.get("YARDMASTER_TEST_VOLUME_CLASS", "shared")
PATIENCE = 600.0
READS = """
import os, sys, tempfile, time
print("begun", time.time(), flush=True)
from yardmaster_runner.data.inputs import find
from yardmaster_runner.data.passes import Passes, listed
way, count, size = sys.argv[-3], int(sys.argv[-2]), int(sys.argv[-1])

def written():
    top = tempfile.mkdtemp()
    for number in range(count):
        with open(os.path.join(top, str(number)), "wb") as file:
            for begin in range(0, size, 1 << 20):
                file.write(os.urandom(min(1 << 20, size - begin)))
    return top

def in_folder():
    for folder, _, names in os.walk(top, followlinks=True):
        for name in names:
            yield os.path.join(folder, name)

def streamed():
    for number, shard in passes.one():
        yield passes.get(number, shard)
        passes.release(number, shard)

if way == "stream":
    found, files = find(), streamed
    passes = Passes(found, [path for path, _ in listed(found)], shuffle=False, seed=None)
else:
    top, files = written() if way == "disk" else os.environ["DATA_DIR"], in_folder
for epoch in (1, 2):
    began, read, seen = time.monotonic(), 0, 0
    for path in files():
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                read += len(chunk)
        seen += 1
    assert (seen, read) == (count, count * size), (seen, read)
    print("epoch", epoch, read, seen, time.monotonic() - began, flush=True)
"""
WAYS: dict[str, tuple[str, dict[str, str] | None]] = {
    "copy": ("the task's disk, copied from MinIO", {}),
    "stream": ("streamed from MinIO", {"mode": "stream"}),
    "volume": ("the data volume", {"source": "volume"}),
    "disk": ("the task's disk, written by the script", None),
}
"""What each is called, and how its input is read; None: there is no input."""


@dataclass(frozen=True)
class Files:
    """Of one dataset: so many of this size (in bytes), called so. What ends in `.tfrecord` can be streamed."""

    title: str
    count: int
    size: int
    ending: str
    ways: Sequence[str]

    def write(self, top: Path) -> None:
        """A hundred in each folder."""
        for number in range(self.count):
            place = top / str(number // 100) / f"{number}{self.ending}"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(os.urandom(self.size))


LARGE = Files(f"{MEGABYTES} MiB in 16 files", 16, MEGABYTES << 16, ".tfrecord", ("copy", "stream", "volume", "disk"))
SMALL = Files(f"{SMALL_FILES} files of 10 kB", SMALL_FILES, 10_000, ".bin", ("copy", "volume", "disk"))


def measure() -> Iterable[Line]:
    with ground() as here:
        tasks = json.loads(here.settings()["YARDMASTER_KUBERNETES_TASKS"]) | {"volume_class": CLASS}
        with tempfile.TemporaryDirectory() as folder, minio(Path(folder) / "minio", here.cluster.own_address) as server:
            settings = server.variables() | {"YARDMASTER_KUBERNETES_TASKS": json.dumps(tasks)}
            with portal_on(here, **settings) as portal:
                yield from Scene(portal, Path(folder)).lines()


class Scene:
    """A portal with a data volume, and two datasets on it: a few large files, and many small ones."""

    def __init__(self, portal: BenchPortal, folder: Path) -> None:
        self._client, self._folder = portal.client, folder
        namespace = next(one.id for one in self._client.namespaces() if one.personal and one.role == "manager")
        self._client.volume_create(namespace, kind="data", size=f"{4 * MEGABYTES + 512}Mi")
        self._code = portal.put_script("reads", READS)

    def lines(self) -> Iterator[Line]:
        for files in (LARGE, SMALL):
            version = self._published(files)
            found: dict[str, list[tuple[float, ...]]] = {way: [] for way in files.ways}
            for number in range(ROUNDS):  # A B B A: a machine that slows down favours neither
                for way in files.ways if number % 2 else reversed(files.ways):
                    found[way].append(self._run(version, files, way))
            for way, runs in found.items():
                begin, first, second = (median(one[n] for one in runs) for n in range(3))
                yield Line(f"{files.title}, {WAYS[way][0]}: until the script begins", begin, "s")
                yield Line("... first epoch", first, "MB/s")
                yield Line("... second epoch", second, "MB/s", note=f"medians of {ROUNDS}")

    def _published(self, files: Files) -> str:
        top = self._folder / files.ending
        files.write(top)
        latest = self._client.datasets.put(f"data {files.count}", [top]).latest
        assert latest is not None
        job = self._client.version_publish(latest.id)["job"]
        assert self._client.jobs.wait(job, timeout=PATIENCE).phase == "SUCCEEDED"
        return str(latest.id)

    def _run(self, version: str, files: Files, way: str) -> tuple[float, ...]:
        """Seconds until the script begins, counted from the job's admission, and MB/s of the two epochs."""
        how = WAYS[way][1]
        spec = {
            "name": "reads", "strategy": "single", "code": self._code, "entry_point": "main.py", "reclaim_delay": 0,
            "roles": {"worker": {"replicas": 1, "cpu": 0.5, "memory": "256Mi"}},
            "inputs": [] if how is None else [{"dataset_version": version, **how}],
            "arguments": [way, str(files.count), str(files.size)],
        }  # fmt: skip
        job = self._client.jobs.wait(self._client.jobs.launch(spec).id, timeout=PATIENCE)
        assert job.phase == "SUCCEEDED", (job.reason, job.message)
        said = [line.text.split() for line in self._client.jobs.lines(job.id) if isinstance(line, LogLine)]
        begun = next(float(words[1]) for words in said if words[:1] == ["begun"])
        epochs = [float(words[2]) / 1e6 / float(words[4]) for words in said if words[:1] == ["epoch"]]
        assert job.admitted_at is not None
        return begun - job.admitted_at.timestamp(), *epochs
