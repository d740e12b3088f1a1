"""Preparation against the loop that people write by hand, two workers against one, and its memory while an input passes
that is many times as large.

`YARDMASTER_BENCH_SIZE` is the size of that input, such as 10G. Its files are links to one file on the disk, and shards
are emptied soon after they are closed.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from portal.env import task_python
from tests.bench.lines import Line, interleaved, median

ROUNDS = int(os.environ.get("YARDMASTER_BENCH_ROUNDS", "4"))
PLATFORM = Path(__file__).resolve().parents[2] / "platform"
LIMIT = 512 << 20
"""Of memory that a worker writes to, TensorFlow included."""
SIZE = os.environ.get("YARDMASTER_BENCH_SIZE", "256M")
UNITS = {"M": 10**6, "G": 10**9}


@dataclass
class Worker:
    """A process that has imported TensorFlow."""

    process: subprocess.Popen[str]

    def begin(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def ended(self) -> tuple[float, int]:
        """Seconds of what was begun, and the most bytes that the process has had in memory."""
        assert self.process.stdout is not None
        _, seconds, most = self.process.stdout.readline().split()
        return float(seconds), int(most) << 10


@contextmanager
def worker(*arguments: object) -> Iterator[Worker]:
    command = [task_python(), str(Path(__file__).with_name("preparing_child.py")), *map(str, arguments)]
    told = {**os.environ, "PYTHONPATH": str(PLATFORM)}
    process = subprocess.Popen(command, env=told, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        while process.stdout.readline().strip() != "ready":
            assert process.poll() is None, "the worker has ended"
        yield Worker(process)
    finally:
        process.kill()
        process.wait()


def measure() -> Iterable[Line]:
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as folder, ExitStack() as stack:
        one, two = stack.enter_context(worker("make", folder)), stack.enter_context(worker("work"))
        for name in ("pictures", "table"):
            yield from _speed(folder, name, one, two)
        stack.close()
        yield from _memory(Path(folder))


def _speed(folder: str, name: str, one: Worker, two: Worker) -> Iterator[Line]:
    source, outputs = f"{folder}/{name}", [f"{folder}/out-0", f"{folder}/out-1"]

    def alone(what: str) -> float:
        one.begin(what, source, outputs[0], 0, 1)
        return one.ended()[0]

    def together() -> float:
        for number, each in enumerate((one, two)):
            each.begin("prepare", source, outputs[number], number, 2)
        return max(each.ended()[0] for each in (one, two))

    alone("prepare"), alone("bare"), together()  # what is read for the first time comes from the disk
    ours, bare = interleaved(lambda: alone("prepare"), lambda: alone("bare"), ROUNDS)
    single, both = interleaved(lambda: alone("prepare"), together, ROUNDS)
    note = f"{median(ours):.2f} s, by hand {median(bare):.2f} s"
    yield Line(f"preparing {name}: speed, of a TFRecordWriter loop by hand", median(bare) / median(ours), "",
               at_least=0.8, note=note)  # fmt: skip
    yield Line("... two workers, times one", median(single) / median(both), "", at_least=1.6,
               note=f"{os.cpu_count()} processors")  # fmt: skip


def _memory(top: Path) -> Iterator[Line]:
    size = int(float(SIZE[:-1]) * UNITS[SIZE[-1]])
    found = {}
    for name, ending in (("pictures", "jpg"), ("table", "csv")):
        first = next((top / name).rglob(f"*.{ending}"))
        for part in (8, 1):
            source = _of_links(first, top / f"{name}-{part}", size // part)
            found[name, part] = _peak(source, top / "out-memory")
    for name in ("pictures", "table"):
        grown = found[name, 1] - found[name, 8]
        note = f"most {found[name, 1] / 2**20:.0f} MiB, of which TensorFlow's own code is shared"
        yield Line(f"{SIZE} of {name} through {LIMIT >> 20} MiB, memory more than for an eighth", grown / 2**20, "MiB",
                   at_most=32, note=note)  # fmt: skip


def _of_links(first: Path, top: Path, size: int) -> Path:
    """A folder whose files have so many bytes together and are one file on the disk."""
    (top / "class").mkdir(parents=True)
    for number in range(max(1, size // first.stat().st_size)):
        if number % 50_000 == 0:  # a file system allows 65,000 links of a file
            copy = top.parent / f"{top.name}-{number}{first.suffix}"
            copy.write_bytes(first.read_bytes())
        os.link(copy, top / "class" / f"{number:07}{first.suffix}")
    return top


def _peak(source: Path, output: Path) -> int:
    """Bytes, of a worker that cannot write to more than `LIMIT`."""
    with worker(LIMIT) as one:
        one.begin("prepare", source, output, 0, 1)
        ended = threading.Event()
        remover = threading.Thread(target=_remove_closed, args=(output, ended))
        remover.start()
        try:
            return one.ended()[1]
        finally:
            ended.set()
            remover.join()


def _remove_closed(output: Path, ended: threading.Event) -> None:
    """Each split's newest shard is the one that is written to."""
    while not ended.wait(1.0):
        now = time.time()
        for split in output.glob("*/"):
            for shard in sorted(split.glob("*.tfrecord"))[:-1]:
                if now - shard.stat().st_mtime > 2:
                    os.truncate(shard, 0)
