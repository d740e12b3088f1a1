"""A command line of the user's as a process: the shell that runs it, and what the shell's programs find. Pure, but for
looking for the shell.
"""

from __future__ import annotations

import os
from typing import Dict, List, Mapping

SHELLS = ("/bin/bash", "/bin/sh")
NAME = "command"
"""What the shell calls itself in its messages."""
LINE = "trap 'code=$?; wait; exit $code' TERM; eval \"$1\""
"""A stop reaches each program of the command, since all are in one process group. The shell itself must not end before
them, or they would not have the grace period: it waits, starts nothing more, and ends as what was running did."""


def through_shell(command: str) -> List[str]:
    """The process that runs the command line."""
    shell = next((one for one in SHELLS if os.access(one, os.X_OK)), SHELLS[-1])
    return [shell, "-c", LINE, NAME, command]


def variables(python: str, environment: Mapping[str, str]) -> Dict[str, str]:
    """What makes `python` in the command the interpreter of the task, whose lines come at once."""
    path = environment.get("PATH", os.defpath)
    folder = os.path.dirname(python)
    if folder and folder not in path.split(os.pathsep):
        path = os.pathsep.join([folder, path])
    return {"PATH": path, "PYTHONUNBUFFERED": environment.get("PYTHONUNBUFFERED", "1")}
