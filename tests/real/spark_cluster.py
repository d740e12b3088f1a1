"""A Spark standalone cluster of its own for tests, as others would run it: a master and two workers, which know nothing
of the portal. Where the system allows it, the workers do not see the portal's folders either.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from portal.env import spark_folder, task_python
from tests.real.portal import free_port
from yardmaster_runner.spark.cluster import DAEMONS
from yardmaster_runner.spark.probe import look_at_all

HOST = "127.0.0.1"
PATIENCE = 120.0


@dataclass(frozen=True)
class Standalone:
    """`python` is the interpreter of its executors: the driver's version, and none of its packages.
    `python_with_tensorflow` has TensorFlow and TensorFlowOnSpark beside."""

    master: str
    folder: Path
    python: str
    python_with_tensorflow: str
    is_apart: bool
    """Whether its workers see nothing below the folder that was hidden from them."""

    def facts(self, **changes: object) -> dict[str, object]:
        """What an administrator registers."""
        return {"master": self.master, "driver_address": HOST, "python": self.python, **changes}

    @property
    def logs(self) -> str:
        """All that its executors printed."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("work-*/*/*/std*")))


@contextlib.contextmanager
def standalone(
    folder: Path, secret: str = "", *, workers: int = 2, hidden: Path | None = None, host: str = HOST
) -> Iterator[Standalone]:
    """A cluster in this folder, at this address, whose workers have a core and 1100 MiB each. Ended with all that it
    started."""
    port = free_port()
    environment = _environment(folder, secret, host)
    home = environment["SPARK_HOME"]
    start = ["bash", f"{home}/bin/spark-class"]
    master = f"spark://{host}:{port}"
    hiding = _hiding(hidden)
    at = ["--host", host, "--port", str(port), "--webui-port", "0"]
    begun = [_started([*start, "org.apache.spark.deploy.master.Master", *at], environment, folder / "master.log")]
    try:
        _until_it_answers(master)
        for number in range(workers):
            command = [
                *hiding, *start, "org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", "0",
                "--cores", "1", "--memory", "1100m", "--work-dir", str(folder / f"work-{number}"), master,
            ]  # fmt: skip
            begun.append(_started(command, environment, folder / f"worker-{number}.log"))
        yield Standalone(master, folder, os.path.realpath(task_python()), _with_tensorflow(folder), bool(hiding))
    finally:
        for one in reversed(begun):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()


def _environment(folder: Path, secret: str, host: str) -> dict[str, str]:
    settings = folder / "conf"
    settings.mkdir(parents=True)
    lines = ["spark.master.rest.enabled false"]
    lines += ["spark.authenticate true", f"spark.authenticate.secret {secret}"] if secret else []
    (settings / "spark-defaults.conf").write_text("\n".join(lines) + "\n")
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "JAVA_HOME")}
    home = os.path.realpath(f"{spark_folder()}/pyspark")
    own = {"SPARK_HOME": home, "SPARK_CONF_DIR": str(settings), "SPARK_LOCAL_IP": host}
    return {**kept, **DAEMONS, **own, "SPARK_LOCAL_DIRS": str(folder / "scratch")}


def _with_tensorflow(folder: Path) -> str:
    """An interpreter as those of such a cluster have it."""
    command = folder / "python-with-tensorflow"
    packages = f'PYTHONPATH="$PYTHONPATH:{spark_folder()}" TF_CPP_MIN_LOG_LEVEL=2'
    command.write_text(f'#!/bin/sh\n{packages} exec {task_python()} "$@"\n')
    command.chmod(0o755)
    return str(command)


def _hiding(hidden: Path | None) -> list[str]:
    """What a command begins with that shall find nothing in this folder; nothing where the system does not allow it."""
    if hidden is None or shutil.which("unshare") is None:
        return []
    apart = ["unshare", "--map-root-user", "--mount"]
    words = f'mount -t tmpfs none {hidden} && exec "$@"'
    tried = subprocess.run([*apart, "sh", "-c", words, "sh", "true"], check=False, capture_output=True)
    return [*apart, "sh", "-c", words, "sh"] if tried.returncode == 0 else []


def _started(command: list[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """In a group of its own, by which all that it starts is ended."""
    with log.open("w") as output:
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip


def _until_it_answers(master: str) -> None:
    until = time.monotonic() + PATIENCE
    while look_at_all(master)[-1].problem:
        assert time.monotonic() < until, "the master does not come up"
        time.sleep(0.2)
