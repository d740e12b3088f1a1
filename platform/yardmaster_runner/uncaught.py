"""Which exception ended the script, read from the end of its output. Pure.

Not here: how tracebacks are read (`tracebacks`), and what an exception means for the task (`reasons`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import List, Optional

from yardmaster_runner.tracebacks import FRAME, last_chain, telling

NOT_THE_USERS = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|"
    r"[/\\]offered[/\\](?:yardmaster_runner|pyspark|py4j|tensorflowonspark)[/\\]|[/\\]pyspark\.zip[/\\]|^<"
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
    """`line` has class and message; `frame` is the innermost line of the user's own code, `file:line:function`.

    `first` is the message's first line as Python printed it, `outer` the exception that this one led to, if it did."""

    line: str
    frame: str = ""
    first: str = ""
    outer: str = ""

    @property
    def name(self) -> str:
        """The class without its module."""
        return _name_of(self.line)

    @property
    def is_transient(self) -> bool:
        """Whether it may have come from something outside that is there again later."""
        return any(map(_is_transient, (self.line, self.outer)))

    @property
    def said(self) -> str:
        """What to report: the cause, and what it led to."""
        return "%s (then %s)" % (self.line, self.outer) if self.outer else self.line

    @property
    def signature(self) -> str:
        """The same for the same failure: what differs from start to start (numbers, addresses, paths) is left out."""
        message = self.line.partition(":")[2]
        for pattern, word in ((ADDRESS, "<address>"), (PATH, "<path>"), (NUMBER, "<n>")):
            message = pattern.sub(word, message)
        whole = "\n".join((self.name, message.strip(), self.frame))
        return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:16]


def uncaught_in(lines: List[str]) -> Optional[Uncaught]:
    """The exception that says why the script ended, None where none has ended it."""
    chain = last_chain(lines)
    if not chain:
        return None
    one, last = telling(chain), chain[-1]
    outer = last.headline if last is not one else ""
    return Uncaught(one.headline, _frame_of(one.frames), one.first, outer)


def _name_of(line: str) -> str:
    return line.split(":", 1)[0].strip().rsplit(".", 1)[-1]


def _is_transient(line: str) -> bool:
    name = _name_of(line)
    return name in TRANSIENT_NAMES or bool(TRANSIENT_NAME.search(name) or TRANSIENT_WORDS.search(line))


def _frame_of(frames: List[str]) -> str:
    own = [line for line in frames if not NOT_THE_USERS.search(_parts(line)[0])] or frames
    if not own:
        return ""
    path, number, function = _parts(own[-1])
    return ":".join((re.split(r"[/\\]", path)[-1], number, function))


def _parts(frame: str) -> List[str]:
    found = FRAME.match(frame)
    return [part or "" for part in found.groups()] if found else ["", "", ""]
