"""The same data read by the same script, once copied from the store to the disk of the task, once in place on the data
volume: how long until the script begins, and how fast it reads, the first time and again.

Needs a StorageClass with ReadWriteMany, named by `YARDMASTER_TEST_VOLUME_CLASS` (the development cluster's is `shared`:
a folder of its one node, so that its figures are those of a disk and of no network).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.bench.bench_portal import BenchPortal
from tests.bench.cluster.ground import ground, portal_on
from tests.bench.lines import Line, median
from yardmaster_client.models import LogLine

ROUNDS = int(os.environ.get("YARDMASTER_BENCH_ROUNDS", "5"))
MEGABYTES = int(os.environ.get("YARDMASTER_BENCH_MEGABYTES", "256"))
SMALL_FILES = int(os.environ.get("YARDMASTER_BENCH_FILES", "2000"))
CLASS = os.environ.get("YARDMASTER_TEST_VOLUME_CLASS", "shared")
PATIENCE = 600.0
READS = """
import os, sys, time
print("begun", time.time(), flush=True)
for epoch in (1, 2):
    began, size, files = time.monotonic(), 0, 0
    for folder, _, names in os.walk(os.environ["DATA_DIR"], followlinks=True):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                while chunk := file.read(1 << 20):
                    size += len(chunk)
            files += 1
    print("epoch", epoch, size, files, time.monotonic() - began, flush=True)
"""


def measure() -> Iterable[Line]:
    with ground() as here:
        tasks = json.loads(here.settings()["YARDMASTER_KUBERNETES_TASKS"]) | {"volume_class": CLASS}
        settings = {"YARDMASTER_KUBERNETES_TASKS": json.dumps(tasks)}
        with portal_on(here, **settings) as portal, tempfile.TemporaryDirectory() as folder:
            yield from Scene(portal, Path(folder)).lines()


class Scene:
    """A portal with a data volume, and two datasets on it: a few large files, and many small ones."""

    def __init__(self, portal: BenchPortal, folder: Path) -> None:
        self._client, self._folder = portal.client, folder
        namespace = next(one.id for one in self._client.namespaces() if one.personal and one.role == "manager")
        self._client.volume_create(namespace, kind="data", size=f"{4 * MEGABYTES + 512}Mi")
        self._code = portal.put_script("reads", READS)

    def lines(self) -> Iterator[Line]:
        large = [(f"{number}.bin", MEGABYTES << 16) for number in range(16)]
        small = [(f"{number // 100}/{number}.bin", 10_000) for number in range(SMALL_FILES)]
        for title, files in ((f"{MEGABYTES} MiB in 16 files", large), (f"{SMALL_FILES} files of 10 kB", small)):
            version = self._published(title.split()[0], files)
            found: dict[str, list[tuple[float, ...]]] = {"store": [], "volume": []}
            for number in range(ROUNDS):  # A B B A: a machine that slows down favours neither
                for source in ("store", "volume") if number % 2 else ("volume", "store"):
                    found[source].append(self._run(version, source))
            for way, source in (("the task's disk, copied from the store", "store"), ("the data volume", "volume")):
                begin, first, second = (median(one[n] for one in found[source]) for n in range(3))
                yield Line(f"{title}, {way}: until the script begins", begin, "s")
                yield Line("... first epoch", first, "MB/s")
                yield Line("... second epoch", second, "MB/s", note=f"medians of {ROUNDS}")

    def _published(self, name: str, files: list[tuple[str, int]]) -> str:
        top = self._folder / name
        for path, size in files:
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_bytes(os.urandom(size))
        latest = self._client.datasets.put(f"data {name}", [top]).latest
        assert latest is not None
        job = self._client.version_publish(latest.id)["job"]
        assert self._client.jobs.wait(job, timeout=PATIENCE).phase == "SUCCEEDED"
        return str(latest.id)

    def _run(self, version: str, source: str) -> tuple[float, ...]:
        """Seconds until the script begins, counted from the job's admission, and MB/s of the two epochs."""
        spec = {
            "name": "reads", "strategy": "single", "code": self._code, "entry_point": "main.py", "reclaim_delay": 0,
            "roles": {"worker": {"replicas": 1, "cpu": 0.5, "memory": "256Mi"}},
            "inputs": [{"dataset_version": version, "source": source}],
        }  # fmt: skip
        job = self._client.jobs.wait(self._client.jobs.launch(spec).id, timeout=PATIENCE)
        assert job.phase == "SUCCEEDED", (job.reason, job.message)
        said = [line.text.split() for line in self._client.jobs.lines(job.id) if isinstance(line, LogLine)]
        begun = next(float(words[1]) for words in said if words[:1] == ["begun"])
        epochs = [float(words[2]) / 1e6 / float(words[4]) for words in said if words[:1] == ["epoch"]]
        assert job.admitted_at is not None
        return begun - job.admitted_at.timestamp(), *epochs
