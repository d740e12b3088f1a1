"""`python -m tests.run [--all]`: what can be tested on this machine; says which suites could not run, and why.

Tests marked `long` run with `--all` only. Other arguments go to pytest. With CI=true a suite that cannot run is a
failure, not a note.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from portal.env import task_python
from tests.browser.visitor import lacks_chromium
from tests.integration.workbench.jupyter_session import lacks_jupyterlab
from tests.real.ignite import lacks_ignite
from tests.real.machines import lacks_machines
from tests.real.spark import missing_for_spark
from tests.timing import KEEP_TIMES

ROOT = Path(__file__).resolve().parents[1]
ALL = "--all"


@dataclass(frozen=True)
class Suite:
    """Tests that need something of the machine: the marker they carry, and how to tell that it is there."""

    name: str
    marker: str
    lacks: Callable[[], str]


def _lacks_postgres() -> str:
    found = shutil.which("initdb") or next(Path("/usr/lib/postgresql").glob("*/bin/initdb"), None)
    return "" if found else "no PostgreSQL programs (Debian: apt install postgresql)"


def _lacks_linux() -> str:
    return "" if sys.platform == "linux" else f"needs Linux, this is {sys.platform}"


def _lacks_tensorflow() -> str:
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tensorflow') is None)"
    with contextlib.suppress(OSError):
        if subprocess.run([task_python(), "-c", look], check=False).returncode == 0:
            return ""
    return "TensorFlow is not installed in .venv-tasks (make setup)"


def _lacks_s3_servers() -> str:
    """Builds them where that was not done: no test waits as long as the first build takes."""
    if not shutil.which("go"):
        return "no Go to build MinIO and versitygw with (Debian: apt install golang)"
    for name in ("minio", "versitygw"):
        if subprocess.run(
            [ROOT / "deploy/objectstores/build", name], stdout=subprocess.DEVNULL, check=False
        ).returncode:
            return f"{name} could not be built"
    return ""


SUITES = (
    Suite("pages in a real Chromium", "browser", lacks_chromium),
    Suite("real PostgreSQL", "postgres", _lacks_postgres),
    Suite("memory limits and process groups of Linux", "linux", _lacks_linux),
    Suite("real S3 servers, MinIO and versitygw", "s3", _lacks_s3_servers),
    Suite("a real Apache Ignite", "ignite", lacks_ignite),
    Suite("Spark applications", "spark", missing_for_spark),
    Suite("training with TensorFlow", "tensorflow", _lacks_tensorflow),
    Suite("machines that are reached by SSH", "ssh", lacks_machines),
    Suite("JupyterLab and the starter notebooks", "workbench", lacks_jupyterlab),
)


def main(arguments: list[str]) -> int:
    with_long, arguments = ALL in arguments, [one for one in arguments if one != ALL]
    lacking = [(suite, reason) for suite in SUITES if (reason := suite.lacks())]
    left_out = ["cluster", *(suite.marker for suite, _ in lacking), *([] if with_long else ["long"])]
    excluded = " and ".join(f"not {marker}" for marker in left_out)
    command = [sys.executable, "-m", "pytest", "-m", excluded, *_plugins(arguments), *arguments]
    # The times of all tests are kept for `make figures`; those of some would say little.
    kept = {} if arguments else {KEEP_TIMES: "1"}
    done = subprocess.run(command, cwd=ROOT, check=False, env=os.environ | kept)
    print("\nSuites:")
    print("  ran        everything that needs Python alone")
    for suite in SUITES:
        reason = next((reason for one, reason in lacking if one is suite), "")
        print(f"  {'could not' if reason else 'ran      '}  {suite.name}{': ' + reason if reason else ''}")
    if not with_long:
        print("  left out   the same on more input, or for longer: make test-all")
    print("  elsewhere  jobs in pods on a real cluster: make test-cluster")
    if lacking and os.environ.get("CI"):
        print("In CI every suite must run.")
        return done.returncode or 1
    return done.returncode


def _plugins(arguments: list[str]) -> list[str]:
    """Three workers, unless told otherwise: half of the tests wait for clocks and for processes that start. Those that
    start whole portals and browsers would starve each other in more (measured: four on two cores fail)."""
    plugins = ["-p", "tests.timing", "-p", "tests.scheduling"]
    if any(one.startswith(("-n", "--numprocesses")) for one in arguments) or (os.cpu_count() or 1) == 1:
        return plugins
    return [*plugins, "-n", "3"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
