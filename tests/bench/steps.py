"""Whether a script's steps take longer while its runner sends large files to MinIO: a checkpoint and another output.

One job on the local engine computes steps of fixed work in one thread. Times without uploads and with them alternate.
The portal, MinIO and this process keep off the script's processor, as if they were on other machines. The runner is in
turn on another processor than the script and on the same one, which is a task that has no processor to spare.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.bench.bench_portal import BenchPortal, bench_portal
from tests.bench.lines import Line
from tests.bench.step_times import Ratios, Sample, Span, Step, busy_spans, ratio, ratios, taken, within
from tests.real.object_stores import KEYS, minio

MIB = 1 << 20
SIZE = int(os.environ.get("YARDMASTER_BENCH_STEPS_MIB", "512"))
"""MiB of each checkpoint. The other output has a quarter: a runner that sends for long pauses for longer."""
SHARED = (False, True, True, False)
"""For each round, whether the runner is on the script's processor."""
SETTLE, QUIET = 3.0, 6.0
SAMPLE_EVERY = 0.1
ROUND_PATIENCE = 120.0
WORK = """
import os, sys, time
from array import array
import numpy
folder = sys.argv[-1]
weights = numpy.full((256, 256), 1 / 256, numpy.float32)
def step():
    state = weights
    for _ in range(8):
        state = state @ weights
for _ in range(100):
    step()
with open(folder + "/new", "w") as file:
    file.write(f"{os.getpid()} {os.environ['LOG_DIR']}")
os.replace(folder + "/new", folder + "/begun")
times = array("d")
while os.path.exists(folder + "/goes_on"):
    begun, used = time.monotonic(), time.thread_time()
    step()
    times.extend((begun, time.monotonic(), time.thread_time() - used))
with open(folder + "/steps", "wb") as file:
    times.tofile(file)
"""


@dataclass(frozen=True)
class Round:
    """When nothing was sent, and then when the files were."""

    quiet: Span
    sending: Span


@dataclass(frozen=True)
class Task:
    """The running job, its script and its runner, and the folder that the script shares with this process."""

    portal: BenchPortal
    job: str
    folder: Path
    log: Path
    script: psutil.Process
    runner: psutil.Process

    def place(self, number: int) -> None:
        """Let a checkpoint and an output appear in the log directory, complete at once."""
        output = self.log / f"output-{number}.bin"
        os.replace(self.folder / f"output-{number}", output)
        os.utime(output, (0, 0))  # a large file is not sent as long as it is new
        os.replace(self.folder / f"weights-{number}", self.log / f"ckpt-{number}.data-00000-of-00001")
        (self.log / f"ckpt-{number}.index").write_bytes(b"index")
        (self.folder / "state").write_text(f'model_checkpoint_path: "ckpt-{number}"\n')
        os.replace(self.folder / "state", self.log / "checkpoint")

    def has_sent(self, number: int) -> bool:
        client = self.portal.client
        return any(one.path == f"output-{number}.bin" for one in client.jobs.outputs(self.job)) and any(
            one["step"] == number for one in client.transport.get(f"jobs/{self.job}/checkpoints/")
        )


def measure() -> Iterable[Line]:
    own, others = processors()
    os.sched_setaffinity(0, others)  # what is started from here on inherits it
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as top,
        minio(Path(top) / "store") as server,
        bench_portal(settings=_settings(server.url)) as portal,
    ):
        folder = Path(top) / "steps"
        folder.mkdir()
        (folder / "goes_on").touch()  # where this process fails, the script ends with the folder
        _fill(folder)
        task = _started(portal, folder)
        _keep_on(task.script, own)
        with sampled(task.runner) as samples:
            rounds = [_round(task, number, own if shared else others) for number, shared in enumerate(SHARED, 1)]
        (folder / "goes_on").unlink()
        job = portal.client.jobs.wait(task.job, timeout=60)
        assert job.phase == "SUCCEEDED", (job.reason, job.message)
        steps = _read(folder / "steps")
    yield from unlike(rounds, steps)
    note = "" if own != others else "one processor for everything"
    for shared, name in ((False, "runner on another processor"), (True, "runner on the script's")):
        chosen = [one for one, is_shared in zip(rounds, SHARED, strict=True) if is_shared == shared]
        yield from lines(name, compared(chosen, steps, samples), note)


def processors() -> tuple[Set[int], Set[int]]:
    """One for the script, and the others for the rest; the same one twice where there is no other."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others) or {first}


def compared(rounds: Iterable[Round], steps: list[Step], samples: list[Sample]) -> Ratios:
    """Of all these rounds together."""
    rounds = list(rounds)
    sending = [
        span for span in busy_spans(samples) if any(one.sending[0] <= span[0] < one.sending[1] for one in rounds)
    ]
    return ratios(within(steps, [one.quiet for one in rounds]), within(steps, sending), samples, sending)


def unlike(rounds: list[Round], steps: list[Step]) -> Iterator[Line]:
    """What other work on the machine makes of the ratios: they would be 1 on a quiet one."""
    ours, theirs = (
        within(steps, [one.quiet for one, is_shared in zip(rounds, SHARED, strict=True) if is_shared == shared])
        for shared in (True, False)
    )
    yield Line("steps without uploads, in two rounds over two: median time", ratio(ours, theirs, 0.5, taken))
    yield Line("... 99th percentile", ratio(ours, theirs, 0.99, taken))


def lines(name: str, found: Ratios, note: str) -> Iterator[Line]:
    told = f"{found.steps:,} steps during uploads" + (f"; {note}" if note else "")
    yield Line(f"steps during uploads, {name}: median time", found.median, at_most=1.02, note=told)
    yield Line("... 99th percentile", found.p99, at_most=1.1)
    yield Line("... median processor time", found.processor_median, at_most=1.02)
    yield Line("... 99th percentile of processor time", found.processor_p99, at_most=1.1)
    yield Line("... the runner's part of one processor", found.share)


def _round(task: Task, number: int, place: Set[int]) -> Round:
    _keep_on(task.runner, place)
    time.sleep(SETTLE)
    begun = time.monotonic()
    time.sleep(QUIET)
    placed = time.monotonic()
    task.place(number)
    _wait(lambda: task.has_sent(number), f"round {number}: the portal has both files", ROUND_PATIENCE)
    return Round((begun, placed), (placed, time.monotonic()))


def _started(portal: BenchPortal, folder: Path) -> Task:
    spec = {
        "name": "steps", "strategy": "single", "code": portal.put_script("steps", WORK), "entry_point": "main.py",
        "arguments": [str(folder)], "reclaim_delay": 0, "grace_period": 2,
        "roles": {"worker": {"replicas": 1, "cpu": 1, "memory": "1Gi"}},
    }  # fmt: skip
    job = portal.client.jobs.launch(spec)
    _wait((folder / "begun").exists, "the script's steps", ROUND_PATIENCE)
    pid, log = (folder / "begun").read_text().split(maxsplit=1)
    Path(log).mkdir(parents=True, exist_ok=True)
    script = psutil.Process(int(pid))
    runner = next(one for one in script.parents() if "yardmaster_runner" in one.cmdline())
    return Task(portal, job.id, folder, Path(log), script, runner)


def _keep_on(process: psutil.Process, place: Set[int]) -> None:
    """All of its threads; those to come inherit it."""
    for thread in process.threads():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread.id, place)


@contextmanager
def sampled(runner: psutil.Process) -> Iterator[list[Sample]]:
    """What the runner reads and uses, noted until the end of the block."""
    samples: list[Sample] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(SAMPLE_EVERY):
            used = runner.cpu_times()
            samples.append(Sample(time.monotonic(), runner.io_counters().read_chars, used.user + used.system))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def _wait(condition: Callable[[], bool], what: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(0.5)


def _fill(folder: Path) -> None:
    """The files of every round, in the same file system as the log directory, so that they can be moved there."""
    block = os.urandom(MIB)
    for number in range(1, len(SHARED) + 1):
        for name, size in (("output", SIZE // 4), ("weights", SIZE)):
            with (folder / f"{name}-{number}").open("wb") as file:
                for _ in range(size):
                    file.write(block)
    os.sync()


def _read(file: Path) -> list[Step]:
    numbers = array("d", file.read_bytes())
    return [Step(*numbers[at : at + 3]) for at in range(0, len(numbers), 3)]


def _settings(endpoint: str) -> Mapping[str, str]:
    access_key, secret_key = KEYS
    return {
        "YARDMASTER_S3_ENDPOINT": endpoint, "YARDMASTER_S3_BUCKET": "portal",
        "YARDMASTER_S3_ACCESS_KEY": access_key, "YARDMASTER_S3_SECRET_KEY": secret_key,
    }  # fmt: skip
