"""Why a script ended badly, from its exit code, the last of its output, and the kernel's count of memory kills.

The words are the core's vocabulary (`yardmaster.lifecycle.failures.REASONS`). Pure, but for reading the kernel's count.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from dataclasses import replace
from typing import List, Optional, Sequence

from yardmaster_runner.data.damage import LAST_WORDS
from yardmaster_runner.exits import Ending
from yardmaster_runner.ignite_end import WORD as IGNITE_AWAY
from yardmaster_runner.ignite_end import ignite_that_is_away
from yardmaster_runner.noise import is_noise
from yardmaster_runner.spark.registered import Registered, why_ended
from yardmaster_runner.uncaught import Uncaught, uncaught_in

LONGEST_MESSAGE = 1000
BAD_DATA = 65
"""With this exit code (EX_DATAERR) a program of ours says that it cannot read its input."""
NO_JUPYTERLAB = 69
"""With this one (EX_UNAVAILABLE) a session says that its Python has no JupyterLab."""
NO_SPARK = 70
"""With this one (EX_SOFTWARE) a task of a Spark cluster or a session says that it has no Spark or no Java."""
PREFIX = "yardmaster: "
CLUSTER_FAILED = "SparkClusterFailed"
NO_CLUSTER = 76
"""With this one (EX_PROTOCOL) a driver says that the registered Spark cluster of its job cannot be used."""
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
NO_MEMORY = re.compile(r"MemoryError|std::bad_alloc|OOM when allocating|Cannot allocate memory|Unable to allocate")
OF_EXECUTOR = re.compile(
    rb"^pyspark\S+PythonException: An exception was thrown from the Python worker|"
    rb"^: \S+ Job aborted due to stage failure",
    re.MULTILINE,
)
"""Spark's words in the driver for what a task on an executor has raised."""
NO_SPACE = re.compile(r"No space left on device|\[Errno 28\]|Disk quota exceeded")
NO_SCRIPT = re.compile(r"can't open file '(?P<path>[^']*)'")
USAGE = re.compile(r"^usage:", re.IGNORECASE)
REFUSED = re.compile(r"^(?:\S+: )?error: ", re.IGNORECASE)
REFUSED_BY_ABSL = re.compile(r"^FATAL Flags parsing error:")
FATAL = re.compile(r"^(?:F\d{4} \S+ +\d+ |\d{4}-\d\d-\d\d \S+: F )\S+:\d+\]|^\d{4}-\d\d-\d\d \S+: F \S")
NO_FILE = re.compile(r"No such file or directory")
QUOTED = re.compile(r"(?<=: )b?(['\"])(?P<path>.+?)\1(?: -> .*)?$")
ABSOLUTE = re.compile(r"(?P<path>/[^\s'\";,\]]+)")


def explain_end(
    exit_code: int,
    tail: bytes,
    was_out_of_memory: bool,
    was_asked_to_stop: bool,
    reached: int = 0,
    given: Sequence[str] = (),
) -> Ending:
    """The ending with its reason and the script's own last words. Exit 0 needs no explanation, but of a script that
    was asked to stop: many answer that by saving and ending well, and their work is not done.

    `reached` is how far it came (`Progress.reached`), `given` the folders that were there whole before it began: what
    is missing from them will be missing again."""
    if exit_code == 0 and was_asked_to_stop:
        return Ending(128 + signal.SIGTERM, "Killed", "%s before its work was done" % _stopped_by(signal.SIGTERM))
    if exit_code == 0:
        return Ending(0, "", "")
    lines = _lines_of(tail)
    found = uncaught_in(lines)
    said = bounded("" if found is None else _last_words(lines) or found.said)
    if was_asked_to_stop and exit_code >= 128:
        return Ending(exit_code, "Killed", _stopped_by(exit_code - 128))
    if was_out_of_memory and exit_code == 128 + signal.SIGKILL:
        return Ending(exit_code, "OutOfMemory", "the kernel killed it for using more memory than it may")
    if exit_code > 128:
        words = "it was ended by %s. %s" % (_signal_name(exit_code - 128), said or _fatal_line(lines))
        return Ending(exit_code, "Killed", words.strip())
    away = ignite_that_is_away((found.line, found.first, found.outer)) if found is not None else ""
    if away:
        return Ending(exit_code, IGNITE_AWAY, bounded(away), "", reached)
    word = _word(exit_code, lines, found, reached, given)
    is_telling = found is not None and found.frame and word == "ScriptFailed" and not found.is_transient
    signature = found.signature if found is not None and is_telling else ""
    return Ending(exit_code, word, said or _refusal(word, lines) or _last_line(lines), signature, reached)


def explain_end_of_server(ending: Ending) -> Ending:
    """The same ending where the script was our own server program, which neither fails nor ends as scripts do."""
    word = {"ImportFailed": "NoTensorFlow", "ScriptFailed": "ServerEnded"}.get(ending.reason, ending.reason)
    return replace(ending, reason=word)


def explain_end_of_program(ending: Ending, *, is_service: bool = False) -> Ending:
    """The same ending where what ran was one of our own programs: its exit code says that its data is at fault. The
    data of a service is a model."""
    if ending.exit_code == NO_JUPYTERLAB:
        return replace(ending, reason="NoJupyterLab", message="")
    if ending.exit_code == NO_SPARK:
        return replace(ending, reason="SparkMissing", message=_without_prefix(ending.message))
    if is_service:
        return explain_end_of_server(replace(ending, reason="ModelNotLoaded") if _is_bad_data(ending) else ending)
    return replace(ending, reason="BadData") if _is_bad_data(ending) else ending


def explain_end_of_spark(ending: Ending, tail: bytes, cluster: Optional[Registered] = None) -> Ending:
    """The same ending of a driver or an executor: what it lacks is said in its last line. Where an executor's memory
    was at an end, the driver has not exceeded its own. `cluster`: the registered one that the job uses."""
    if cluster is not None and ending.exit_code == NO_CLUSTER:
        return replace(ending, reason=CLUSTER_FAILED, message=_without_prefix(ending.message))
    why = why_ended(cluster, tail) if cluster is not None and ending.exit_code not in (0, NO_SPARK) else ""
    if why and ending.reason != "Killed":
        return replace(ending, reason=CLUSTER_FAILED, message=bounded(why), signature="")
    if ending.exit_code == NO_SPARK:
        return replace(ending, reason="SparkMissing", message=_without_prefix(ending.message))
    is_of_executor = ending.exit_code == 1 and OF_EXECUTOR.search(tail) is not None
    return replace(ending, reason="ScriptFailed") if is_of_executor and ending.reason == "OutOfMemory" else ending


def _without_prefix(said: str) -> str:
    """What a program of ours said, without the word that marks it in a log."""
    return said[len(PREFIX) :] if said.startswith(PREFIX) else said


def _is_bad_data(ending: Ending) -> bool:
    return ending.exit_code == BAD_DATA


def _word(exit_code: int, lines: List[str], found: Optional[Uncaught], reached: int, given: Sequence[str]) -> str:
    """The words for what fails again at every start are chosen only where nothing else is likely: a wrong type may come
    from an answer that is another one at the next start, so that only its repetition (the signature) tells."""
    if found is None:
        return _word_of_exit(exit_code, lines)
    if found.name in ("ModuleNotFoundError", "ImportError"):
        return "ImportFailed"
    if found.name in ("SyntaxError", "IndentationError", "TabError"):
        return "SyntaxError"
    if NO_MEMORY.search(found.line):
        return "OutOfMemory"
    if NO_SPACE.search(found.line):
        return "DiskFull"
    if found.is_transient or not found.frame or exit_code != 1:
        return "ScriptFailed"
    if found.name in ("NameError", "UnboundLocalError"):
        return "CodeError"
    if reached == 0 and _is_missing_below(found.first or found.line, given):
        return "FileMissing"
    return "ScriptFailed"


def _word_of_exit(exit_code: int, lines: List[str]) -> str:
    """Without a traceback: Python's own words, or those of an argument parser."""
    if exit_code == 2 and NO_SCRIPT.search("\n".join(lines[-3:])):
        return "ScriptNotFound"
    if exit_code == 2 and any(map(USAGE.match, lines)) and any(map(REFUSED.match, lines)):
        return "BadArguments"
    if exit_code == 1 and any(map(REFUSED_BY_ABSL.match, lines)):
        return "BadArguments"
    return "ScriptFailed"


def _is_missing_below(line: str, given: Sequence[str]) -> bool:
    """Whether a file is missing from a folder that was staged whole. A relative path means the code's folder."""
    if not NO_FILE.search(line):
        return False
    found = QUOTED.search(line) or ABSOLUTE.search(line)
    if found is None:
        return False
    path = os.path.normpath(found.group("path"))
    if not os.path.isabs(path):
        return bool(given) and not path.startswith("..")
    return any(path.startswith(os.path.normpath(folder) + os.sep) for folder in given)


def _last_words(lines: List[str]) -> str:
    """What our part of the script says of the exception that has ended it, in the place of TensorFlow's words."""
    last = _last_line(lines)
    return last[len(LAST_WORDS) :] if last.startswith(LAST_WORDS) else ""


def _lines_of(tail: bytes) -> List[str]:
    text = COLOURS.sub("", tail.decode("utf-8", "replace").replace("\r", "\n"))
    return [line.rstrip() for line in CONTROL.sub("", text).split("\n")]


def _refusal(word: str, lines: List[str]) -> str:
    """The line with which a parser refuses its arguments; others with advice may follow it."""
    if word != "BadArguments":
        return ""
    return next((bounded(one) for one in reversed(lines) if REFUSED.match(one) or REFUSED_BY_ABSL.match(one)), "")


def _fatal_line(lines: List[str]) -> str:
    """The check of TensorFlow's C++ that failed, if one did."""
    return next((bounded(line) for line in reversed(lines) if FATAL.match(line)), "")


def _last_line(lines: List[str]) -> str:
    return next((bounded(line.strip()) for line in reversed(lines) if line.strip() and not is_noise(line)), "")


def bounded(text: str, most: int = LONGEST_MESSAGE) -> str:
    """At most so many characters, cut after a sentence where there is one to cut after."""
    if len(text) <= most:
        return text
    end = text.rfind(". ", 0, most - 1) + 1
    return text[:end] + " …" if end > most // 4 else text[: most - 1].rstrip() + "…"


def _stopped_by(number: int) -> str:
    return "Stopped by %s" % _signal_name(number)


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
