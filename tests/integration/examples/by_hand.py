"""Starts the tasks of an example by hand, as a person with a few terminals would: flags or TF_CONFIG, free ports.

Not here: Yardmaster. What a task is told comes from `yardmaster_runner.cluster` alone, so that a script which works
here is told the same in a job.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from portal.env import task_python
from tests.real.portal import free_port
from tests.real.tensorflow_forks import Fork, TensorFlowForks
from yardmaster_runner.cluster import classic_flags, distribution_environment, tf_config

LONG = 150.0
"""Seconds for what takes ten on an idle machine: other tests may run beside it."""
EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass
class Task:
    """One started process and the file with its output."""

    process: subprocess.Popen[bytes] | Fork
    output: Path

    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def wait_for(self, pattern: str, seconds: float = LONG) -> re.Match[str]:
        """The first match in the output. Raises AssertionError when the task ends, or the time, without one."""
        deadline = time.monotonic() + seconds
        while True:
            ended = self.process.poll() is not None
            if found := re.search(pattern, self.text()):
                return found
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"no {pattern!r} in {self.output}:\n{self.text()}")
            time.sleep(0.05)

    def wait(self, seconds: float = LONG) -> int:
        """The exit code. Raises AssertionError with the output when the task has not ended in time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.output} did not end:\n{self.text()}") from None

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@dataclass
class Cluster:
    """The tasks of one job. A context manager that leaves no process behind."""

    script: Path
    strategy: str
    replicas: Mapping[str, int]
    folder: Path
    data_dir: Path
    flags: tuple[str, ...] = ()
    classic: bool = True
    """Whether `between_graph` gets its cluster by flags, or only by TF_CONFIG."""
    forks: Callable[[Mapping[str, str]], TensorFlowForks] | None = None
    """What runs tasks with this environment without importing TensorFlow again for each; None: a process of its own."""
    tasks: dict[tuple[str, int], Task] = field(default_factory=dict)
    _starts: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._hosts = {
            role: [f"127.0.0.1:{free_port()}" for _ in range(count)] for role, count in self.replicas.items()
        }

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self.tasks.values():
            task.kill()

    @property
    def log_dir(self) -> Path:
        return self.folder / "log"

    @property
    def model_dir(self) -> Path:
        return self.folder / "model"

    def start(self, role: str, index: int = 0) -> Task:
        """Start a task, or start it again after its end, on the same address."""
        self._starts += 1
        output = self.folder / f"{role}-{index}.{self._starts}.txt"
        flags = classic_flags(self.strategy, self._hosts, role, index) if self.classic else []
        folders = f"--data_dir={self.data_dir}", f"--log_dir={self.log_dir}"
        process = self._run([str(self.script), *folders, *flags, *self.flags], self._environment(role, index), output)
        self.tasks[role, index] = Task(process, output)
        return self.tasks[role, index]

    def _run(self, arguments: list[str], environment: dict[str, str], output: Path) -> subprocess.Popen[bytes] | Fork:
        if self.forks is not None:
            return self.forks(environment).start(arguments, environment, output)
        with output.open("wb") as file:
            return subprocess.Popen(
                [task_python(), *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT,
            )  # fmt: skip

    def start_all(self) -> None:
        for role, count in self.replicas.items():
            for index in range(count):
                self.start(role, index)

    def __getitem__(self, task: tuple[str, int]) -> Task:
        return self.tasks[task]

    def _environment(self, role: str, index: int) -> dict[str, str]:
        model_dir = self.folder / ("model" if (role, index) == self.leader else f"model-{role}-{index}")
        config = tf_config(self.strategy, self._hosts, role, index, sum(self.replicas.values()))
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1"}
        return {
            **os.environ,
            **quiet,
            **distribution_environment(self.strategy, os.environ),
            **({"TF_CONFIG": json.dumps(config)} if config else {}),
            "MODEL_DIR": str(model_dir),
        }

    @property
    def leader(self) -> tuple[str, int]:
        """The task that exports the model: the chief, or worker 0 where there is none."""
        return ("chief" if "chief" in self.replicas else "worker", 0)
