"""The tracebacks in a script's output: what was raised, where, and which of a chain says why. Pure.

Python prints a chain oldest first. Of exceptions raised `from` another one the oldest tells the cause; of those raised
while another was handled the newest tells it, unless it only failed to clean up, or says nothing. Not here: what an
exception means for the task (`reasons`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import List, Optional

LONGEST_LINE = 1000
MOST_LINES = 200
"""Of one message. Keras puts a whole stack into it."""
TRACEBACK = "Traceback (most recent call last)"
CAUSE = "The above exception was the direct cause of the following exception:"
DURING = "During handling of the above exception, another exception occurred:"
NOT_THE_END = ("Exception ignored in", "Exception in thread", "Exception ignored on")
EXCEPTION = re.compile(r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration|Warning))(?::\s|$)")
FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)(?:, in (.+))?$')
OTHER_LOG = re.compile(
    r"^(?:[IWEF]\d{4} \S|\d{4}-\d\d-\d\d[ T]\d\d:\d\d|yardmaster: |terminate called|Exception ignored |"
    r"\[?(?:INFO|WARNING|ERROR)\b)"
)
"""Written by something else after the traceback, so no part of its message."""

IN_USER_CODE = re.compile(r"^in user code:\s*$")
IN_GRAPH = re.compile(r"^Graph execution error:\s*$")
IN_JAVA = re.compile(r"^An error occurred while calling \S+$")
OF_JAVA = re.compile(r"^: ((?:\w+\.)+\w.*)$")
IN_CALL = re.compile(r"^Exception encountered when calling ")
AFTER_CALL = re.compile(r"^\s*(?:Call a|A)rguments received by ")
OF_THE_GRAPH = re.compile(r"^(?:\s|$|Detected at node |Stack trace |Node: |\d+ root error)|^\t? *\[\[\{\{node")
CLEANING_UP = frozenset({"__exit__", "__aexit__", "__del__", "close", "cleanup", "shutdown", "stop", "join"})
SAY_NOTHING = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit"})


@dataclass
class Raised:
    """One exception of a chain: its message's lines as printed, the first with its class; `link` says how the one
    before it led here."""

    first: str
    frames: List[str] = field(default_factory=list)
    link: str = ""
    more: List[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The class without its module."""
        return self.first.split(":", 1)[0].strip().rsplit(".", 1)[-1]

    @property
    def text(self) -> str:
        """What was said, without the class."""
        return self.headline.partition(":")[2].strip()

    @property
    def headline(self) -> str:
        """Class and message in one line, without the stacks and arguments that TensorFlow, Keras and Py4J put around
        it."""
        return " ".join(" ".join(_telling_lines(self.first, self.more)).split())

    @property
    def is_clean_up(self) -> bool:
        found = FRAME.match(self.frames[-1]) if self.frames else None
        function = (found.group(3) or "") if found else ""
        return function.rsplit(".", 1)[-1] in CLEANING_UP


def last_chain(lines: List[str]) -> List[Raised]:
    """The last chain of exceptions that may have ended the script; empty where there is none.

    A traceback that did not end it does not count: one of a thread, and one that Python could not raise anywhere."""
    reader = _Reader()
    for line in lines:
        reader.read(line)
    return reader.chain


def telling(chain: List[Raised]) -> Raised:
    """The exception of a chain that says why."""
    at = len(chain) - 1
    while at > 0 and _leads_back(chain[at], chain[at - 1]):
        at -= 1
    return chain[at]


def _leads_back(one: Raised, before: Raised) -> bool:
    if one.name in SAY_NOTHING or not one.text:
        return True
    if one.link == CAUSE:
        return not before.text or before.text not in one.text
    return one.is_clean_up


class _Reader:
    """Reads line by line; `chain` is the newest that counts."""

    def __init__(self) -> None:
        self.chain: List[Raised] = []
        self._frames: List[str] = []
        self._link = self._said = ""
        self._is_inside = self._counts = False
        self._open: Optional[Raised] = None

    def read(self, line: str) -> None:
        if line.startswith(TRACEBACK):
            self._begin()
        elif line in (CAUSE, DURING):
            self._link, self._open = line, None
        elif self._is_inside and FRAME.match(line):
            self._frames.append(line)
        elif self._is_inside or (self._open is None and EXCEPTION.match(line)):
            self._raised(line)
        elif FRAME.match(line) and self._open is None:
            self._frames.append(line)
        else:
            self._more(line)
        self._said = line or self._said

    def _begin(self) -> None:
        if not self._link:
            self._counts = not self._said.startswith(NOT_THE_END)
        self._is_inside, self._open, self._frames = True, None, []

    def _raised(self, line: str) -> None:
        if not line or line.startswith(" "):
            return
        if self._counts or not self._is_inside:
            if not self._link:
                self.chain = []
            self._open = Raised(line[:LONGEST_LINE], self._frames, self._link)
            self.chain.append(self._open)
        self._is_inside, self._frames, self._link = False, [], ""

    def _more(self, line: str) -> None:
        """A line after an exception: of its message, as far as can be told."""
        one = self._open
        if one is None:
            return
        if OTHER_LOG.match(line) or len(one.more) >= MOST_LINES:
            self._open = None
        else:
            one.more.append(line[:LONGEST_LINE])


def _telling_lines(first: str, more: List[str]) -> List[str]:
    name, colon, text = first.partition(":")
    text = text.strip()
    if IN_USER_CODE.match(text):
        inner = _in_user_code(more)
        return _telling_lines(inner[0], inner[1:]) if inner else [first]
    if IN_GRAPH.match(text):
        body = _paragraph([line for line in more if not OF_THE_GRAPH.match(line)])
    elif IN_CALL.match(text):
        body = _paragraph(more)
    elif IN_JAVA.match(text):
        body = [found.group(1) for found in map(OF_JAVA.match, more[:1]) if found]
    else:
        return [first, *_continued(first, more)]
    return [name + colon, *body] if body else [first]


def _in_user_code(more: List[str]) -> List[str]:
    """The exception that ends the stack within a message, and what it says, without their indentation."""
    ends = [at for at, line in enumerate(more) if line.startswith("    ") and EXCEPTION.match(line[4:])]
    return [line[4:] if line.startswith("    ") else line for line in more[ends[-1] :]] if ends else []


def _continued(first: str, more: List[str]) -> List[str]:
    """The further lines of a message. What is printed after it looks the same, so one follows only where the line
    before it ends in a mark, or where it is indented."""
    taken: List[str] = []
    for line in _until_blank(more):
        if not (line.startswith((" ", "\t")) or (taken[-1] if taken else first).endswith(tuple(".:,;!?([{"))):
            break
        taken.append(line)
    return taken


def _paragraph(lines: List[str]) -> List[str]:
    """The first lines that are not empty."""
    start = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    return _until_blank(lines[start:])


def _until_blank(lines: List[str]) -> List[str]:
    end = next((at for at, line in enumerate(lines) if not line.strip() or AFTER_CALL.match(line)), len(lines))
    return lines[:end]
