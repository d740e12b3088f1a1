"""Scripts that import TensorFlow, without the six seconds of a processor that this takes: one process has imported it,
and each script runs in a fork of that.

Run by path with the Python of tasks, this file is that process, and imports nothing of ours. It reads one request per
line and answers each with one. With a single thread when it forks: what TensorFlow starts, it starts at its first use.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Fork:
    """A script that runs; as much of `subprocess.Popen` as tests need."""

    def __init__(self, forks: TensorFlowForks, pid: int) -> None:
        self._forks, self.pid = forks, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float = 60) -> int:
        """The exit code. Raises `subprocess.TimeoutExpired`."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a fork", timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Nothing where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _ended(self, seconds: float) -> int | None:
        if self.returncode is None:
            self.returncode = self._forks.ask({"wait": self.pid, "seconds": seconds})
        return self.returncode


class TensorFlowForks:
    """The process, which `python` begins. `environment` is what TensorFlow is imported with."""

    def __init__(self, python: str, environment: Mapping[str, str]) -> None:
        told = {**environment, "TF_CPP_MIN_LOG_LEVEL": "3", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [python, __file__], env=told, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], output: Path) -> Fork:
        """Run the script `arguments[0]`, with what it prints in `output`."""
        output.touch()
        told = {"start": list(arguments), "environment": dict(environment), "output": str(output)}
        pid = self.ask(told)
        assert pid is not None
        return Fork(self, pid)

    def ask(self, request: Mapping[str, Any]) -> int | None:
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        pipe_in.write(json.dumps(request) + "\n")
        pipe_in.flush()
        answer: int | None = json.loads(pipe_out.readline())
        return answer

    def close(self) -> None:
        """Ends every script that still runs, too."""
        with self._process:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait(20)


def _serve() -> None:
    import tensorflow  # noqa: F401

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    ended: dict[int, int | None] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            pid = os.fork()
            if not pid:
                _become(**request)
            ended[pid] = None
            print(pid, file=answers)
        else:
            pid = request["wait"]
            if ended[pid] is None:
                ended[pid] = _waited(pid, request["seconds"])
            print(json.dumps(ended[pid]), file=answers)
    for pid, code in ended.items():
        if code is None:
            os.kill(pid, signal.SIGKILL)


def _waited(pid: int, seconds: float) -> int | None:
    """Its exit code as soon as it has ended; None after so many seconds."""
    import time

    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.05)


def _become(start: list[str], environment: dict[str, str], output: str) -> None:
    """Never returns."""
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.argv = start
    sys.path[0] = str(Path(start[0]).parent)
    code = 0
    try:
        runpy.run_path(start[0], run_name="__main__")
    except SystemExit as wanted:
        code = wanted.code if isinstance(wanted.code, int) else int(bool(wanted.code))
        if isinstance(wanted.code, str):
            print(wanted.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001  # what Python would print
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
