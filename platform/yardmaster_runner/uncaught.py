"""Which exception ended the script, read from the end of its output. Pure.

A traceback that did not end the script does not count: one of a thread, and one that Python could not raise anywhere.
Not here: what an exception means for the task (`reasons`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import List, Optional

LONGEST_LINE = 1000
TRACEBACK = "Traceback (most recent call last)"
NOT_THE_END = ("Exception ignored in", "Exception in thread", "Exception ignored on")
EXCEPTION = re.compile(r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration|Warning))(?::\s|$)")
FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)(?:, in (.+))?$')
NOT_THE_USERS = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|[/\\]offered[/\\]yardmaster_runner[/\\]|^<"
)

ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
PATH = re.compile(r"(?:[A-Za-z]:)?(?:[/\\][^\s/\\'\"`,;:()\[\]{}]+){2,}")
NUMBER = re.compile(r"\d+")

TRANSIENT_NAMES = frozenset(
    {
        "ConnectionError", "ConnectionResetError", "ConnectionRefusedError", "ConnectionAbortedError",
        "BrokenPipeError", "TimeoutError", "InterruptedError", "BlockingIOError", "KeyboardInterrupt", "HTTPError",
        "URLError", "SSLError", "ReadTimeout", "ConnectTimeout", "ProtocolError", "IncompleteRead",
        "OperationalError", "RpcError", "UnavailableError", "AbortedError", "CancelledError", "DeadlineExceededError",
        "FailedPreconditionError", "InternalError", "UnknownError", "ResourceExhaustedError", "ClosureAbortedError",
        "WorkerPreemptionError", "RemoteDisconnected", "JSONDecodeError", "gaierror",
    }
)  # fmt: skip
"""Raised where something else went away, which may be back by the next start, or answered with something else."""
TRANSIENT_NAME = re.compile(r"Connect|Timeout|Disconnect|Throttl|TooManyRequests|Unavailable|^Endpoint\w*Error$")
"""The same for the names that libraries have for it."""
TRANSIENT_WORDS = re.compile(
    r"connection (?:\w+ )?(?:reset|refused|aborted|closed)|socket closed|failed to connect|broken pipe|rpc|"
    r"timed?[ -]?out|unavailable|unreachable|temporar|try again|name resolution|name or service not known|"
    r"stale file handle|input/output error|transport endpoint|address already|cuda|cudnn|nccl|"
    r"closed connection|could not connect|no route to host|bad gateway|slow ?down|throttl|too many requests|"
    r"\b(?:http|status|code)\b(?:/[\d.]+)?\D{0,20}50[0234]\b|\(50[0234]\)|\b50[0234] (?:--|server error)|"
    r"(?:container|resource) \S+ (?:does not exist|.*not found)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Uncaught:
    """`line` as Python printed it; `frame` is the innermost line of the user's own code, `file:line:function`."""

    line: str
    frame: str = ""

    @property
    def name(self) -> str:
        """The class without its module."""
        return self.line.split(":", 1)[0].strip().rsplit(".", 1)[-1]

    @property
    def is_transient(self) -> bool:
        """Whether it may have come from something outside that is there again later."""
        if self.name in TRANSIENT_NAMES or TRANSIENT_NAME.search(self.name):
            return True
        return bool(TRANSIENT_WORDS.search(self.line))

    @property
    def signature(self) -> str:
        """The same for the same failure: what differs from start to start (numbers, addresses, paths) is left out."""
        message = self.line.partition(":")[2]
        for pattern, word in ((ADDRESS, "<address>"), (PATH, "<path>"), (NUMBER, "<n>")):
            message = pattern.sub(word, message)
        whole = "\n".join((self.name, message.strip(), self.frame))
        return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:16]


def uncaught_in(lines: List[str]) -> Optional[Uncaught]:
    """The last exception that may have ended the script, None where there is none."""
    found: Optional[Uncaught] = None
    frames: List[str] = []
    is_inside = counts = False
    said = ""
    for line in lines:
        if line.startswith(TRACEBACK):
            is_inside, counts, frames = True, not said.startswith(NOT_THE_END), []
        elif FRAME.match(line):
            frames.append(line)
        elif line and not line.startswith(" ") and (is_inside or EXCEPTION.match(line)):
            if counts or not is_inside:
                found = Uncaught(line[:LONGEST_LINE], _frame_of(frames))
            is_inside, frames = False, []
        said = line or said
    return found


def _frame_of(frames: List[str]) -> str:
    own = [line for line in frames if not NOT_THE_USERS.search(_parts(line)[0])] or frames
    if not own:
        return ""
    path, number, function = _parts(own[-1])
    return ":".join((re.split(r"[/\\]", path)[-1], number, function))


def _parts(frame: str) -> List[str]:
    found = FRAME.match(frame)
    return [part or "" for part in found.groups()] if found else ["", "", ""]
