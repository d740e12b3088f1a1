"""Whether tasks of this machine can be kept from listening on every network.

TensorFlow's servers bind the wildcard address whatever they are given, and ask for no password: who reaches one reads
and writes whatever the portal's user can. The runner narrows what a task binds (`yardmaster_runner.narrower`) where
the kernel lets it. Here is only the question whether it does.
"""

from __future__ import annotations

import subprocess
from enum import StrEnum
from functools import cache
from pathlib import Path

from yardmaster.errors import Problem

VARIABLE = "YARDMASTER_LOOPBACK_ONLY"
"""Says to the runner that its script may listen on loopback alone."""
_PATIENCE = 30.0


class LoopbackOnly(StrEnum):
    """Whether tasks are kept to loopback."""

    AUTO = "auto"
    """Where the machine can."""
    OFF = "off"
    """As if it could not."""


def can_be_kept(python: str, source_root: Path) -> bool:
    """Whether this machine can, tried once per process with a script that listens. Takes about 0.1 s."""
    try:
        return _tried(python, source_root)
    except (OSError, subprocess.TimeoutExpired):  # that is no answer: asked again
        return False


@cache
def _tried(python: str, source_root: Path) -> bool:
    done = subprocess.run(
        [python, "-S", "-P", "-m", "yardmaster_runner.probe"],
        cwd="/",
        env={"PYTHONPATH": str(source_root), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE,
        check=False,
    )
    return done.returncode == 0


def refusal() -> Problem:
    """Of a job that starts servers, on a machine that cannot."""
    return Problem(
        "strategy",
        "open_servers",
        "The servers of this job would listen on every network, without a password: this machine cannot keep them to "
        "its own addresses (Linux 5.6 or newer with seccomp and pidfd_getfd).",
        "Choose the strategy single or another engine; or set YARDMASTER_LOCAL_OPEN_SERVERS=1 where everyone who "
        "reaches this machine may read and change all that the portal can.",
    )
