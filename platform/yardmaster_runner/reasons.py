"""Why a script ended badly, from its exit code, the last of its output, and the kernel's count of memory kills.

The words are the core's vocabulary (`yardmaster.failures.REASONS`). Pure, but for reading the kernel's count.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from dataclasses import replace
from typing import List, Optional

from yardmaster_runner.exits import Ending

LONGEST_MESSAGE = 1000
TRACEBACK = "Traceback (most recent call last)"
EXCEPTION = re.compile(r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration|Warning))(?::\s|$)")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
NO_MEMORY = re.compile(r"MemoryError|std::bad_alloc|OOM when allocating|Cannot allocate memory|Unable to allocate")
NO_SPACE = re.compile(r"No space left on device|\[Errno 28\]|Disk quota exceeded")
NO_SCRIPT = re.compile(r"can't open file '(?P<path>[^']*)'")


def explain_end(exit_code: int, tail: bytes, was_out_of_memory: bool, was_told_to_stop: bool) -> Ending:
    """The ending with its reason and the script's own last words. Exit 0 needs no explanation, but of a script that
    was told to stop: many answer that by saving and ending well, and their work is not done."""
    if exit_code == 0 and was_told_to_stop:
        return Ending(128 + signal.SIGTERM, "Killed", "it was told to stop before its work was done, and ended well")
    if exit_code == 0:
        return Ending(0, "", "")
    text = CONTROL.sub("", tail.decode("utf-8", "replace").replace("\r", "\n"))
    lines = [line.rstrip() for line in text.split("\n")]
    said = last_exception(lines)
    if was_told_to_stop and exit_code >= 128:
        return Ending(exit_code, "Killed", "it was told to stop and ended by %s" % _signal_name(exit_code - 128))
    if was_out_of_memory and exit_code == 128 + signal.SIGKILL:
        return Ending(exit_code, "OutOfMemory", "the kernel killed it for using more memory than it may")
    if exit_code > 128:
        return Ending(exit_code, "Killed", ("it was ended by %s. %s" % (_signal_name(exit_code - 128), said)).strip())
    return Ending(exit_code, _word(exit_code, lines, said), said or _last_line(lines))


def explain_end_of_server(ending: Ending) -> Ending:
    """The same ending where the script was our own server program, which neither fails nor ends as scripts do."""
    word = {"ImportFailed": "NoTensorFlow", "ScriptFailed": "ServerEnded"}.get(ending.reason, ending.reason)
    return replace(ending, reason=word)


def last_exception(lines: List[str]) -> str:
    """The line that names the exception of the last traceback, shortened; empty where there is none."""
    for at in range(len(lines) - 1, -1, -1):
        if EXCEPTION.match(lines[at]):
            return lines[at][:LONGEST_MESSAGE]
        if lines[at].startswith(TRACEBACK):
            inside = [line for line in lines[at + 1 :] if line and not line.startswith(" ")]
            return inside[0][:LONGEST_MESSAGE] if inside else ""
    return ""


def _word(exit_code: int, lines: List[str], said: str) -> str:
    name = said.split(":", 1)[0].rsplit(".", 1)[-1]
    if name in ("ModuleNotFoundError", "ImportError"):
        return "ImportFailed"
    if name in ("SyntaxError", "IndentationError", "TabError"):
        return "SyntaxError"
    if NO_MEMORY.search(said):
        return "OutOfMemory"
    if NO_SPACE.search(said):
        return "DiskFull"
    if exit_code == 2 and not said and NO_SCRIPT.search("\n".join(lines[-3:])):
        return "ScriptNotFound"
    return "ScriptFailed"


def _last_line(lines: List[str]) -> str:
    return next((line.strip()[:LONGEST_MESSAGE] for line in reversed(lines) if line.strip()), "")


def _signal_name(number: int) -> str:
    try:
        return "signal %d (%s)" % (number, signal.Signals(number).name)
    except ValueError:
        return "signal %d" % number


def memory_kills(cgroups: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> Optional[int]:
    """How many processes of our control group the kernel has killed for memory so far; None where it does not say."""
    with contextlib.suppress(OSError), open(cgroups, encoding="utf-8") as file:
        for line in file:
            number, controllers, path = line.rstrip("\n").split(":", 2)
            if number == "0" or "memory" in controllers.split(","):
                found = _oom_kills(root, controllers, path)
                if found is not None:
                    return found
    return None


def _oom_kills(root: str, controllers: str, path: str) -> Optional[int]:
    """Version 1 counts in memory.oom_control, version 2 in memory.events; in a container the path may be cut off."""
    name, below = ("memory.oom_control", "memory") if controllers else ("memory.events", "")
    for folder in (os.path.join(root, below, path.lstrip("/")), os.path.join(root, below)):
        with contextlib.suppress(OSError, ValueError), open(os.path.join(folder, name), encoding="utf-8") as file:
            for line in file:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return None
