"""How long a task on the local engine waits for many small files of its input, from either store: from the job's
admission until its script begins, beyond that of a job with one such file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path

from tests.bench.bench_portal import BenchPortal, bench_portal
from tests.bench.lines import Line, interleaved, median
from tests.real.object_stores import KEYS, minio
from yardmaster_client.models import LogLine

FILES = int(os.environ.get("YARDMASTER_BENCH_FILES", "2000"))
SIZE = 10_000
ROUNDS = 5
BEGINS = "import time\nprint('begun', time.time(), flush=True)\n"


def measure() -> Iterable[Line]:
    for name, in_a_folder in (("MinIO", False), ("a folder", True)):
        with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as folder:
            store = nullcontext(None) if in_a_folder else minio(Path(folder) / "store")
            with store as server, bench_portal(settings=_settings(server.url) if server else {}) as portal:
                yield from _lines(portal, Path(folder), name)


def _settings(endpoint: str) -> Mapping[str, str]:
    access_key, secret_key = KEYS
    return {
        "YARDMASTER_S3_ENDPOINT": endpoint, "YARDMASTER_S3_BUCKET": "portal",
        "YARDMASTER_S3_ACCESS_KEY": access_key, "YARDMASTER_S3_SECRET_KEY": secret_key,
    }  # fmt: skip


def _lines(portal: BenchPortal, folder: Path, name: str) -> Iterator[Line]:
    code = portal.put_script("begins", BEGINS)
    one, many = (_put(portal, folder, count) for count in (1, FILES))
    few, all_of_them = interleaved(lambda: _seconds(portal, code, one), lambda: _seconds(portal, code, many), ROUNDS)
    more = median(all_of_them) - median(few)
    note = f"{median(all_of_them):.2f} s until the script begins, {median(few):.2f} s with one file"
    yield Line(f"staging {FILES:,} files of {SIZE // 1000} kB from {name}, per file", more / FILES * 1e3, "ms",
               note=note)  # fmt: skip


def _put(portal: BenchPortal, top: Path, count: int) -> str:
    """A dataset of so many files; its version's id."""
    folder = top / f"files-{count}"
    for number in range(count):
        file = folder / str(number // 100) / f"{number}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(SIZE))
    made = portal.client.datasets.put(folder.name, [folder]).latest
    assert made is not None
    return made.id


def _seconds(portal: BenchPortal, code: str, version: str) -> float:
    """From a job's admission until its script begins. Each run fetches its own files."""
    os.sync()
    spec = {
        "name": "begins", "strategy": "single", "code": code, "entry_point": "main.py", "reclaim_delay": 0,
        "roles": {"worker": {"replicas": 1, "cpu": 0.5, "memory": "256Mi"}},
        "inputs": [{"dataset_version": version}],
    }  # fmt: skip
    job = portal.client.jobs.wait(portal.client.jobs.launch(spec).id, timeout=120)
    assert job.phase == "SUCCEEDED", (job.reason, job.message)
    said = [line.text.split() for line in portal.client.jobs.lines(job.id) if isinstance(line, LogLine)]
    assert job.admitted_at is not None
    return next(float(words[1]) for words in said if words[:1] == ["begun"]) - job.admitted_at.timestamp()
