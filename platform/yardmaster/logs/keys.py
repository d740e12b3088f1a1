"""What names a stream of lines, and what goes wrong with one. Not here: where streams lie on disk (`store`)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from yardmaster.errors import YardmasterError
from yardmaster.spec import Role

LINE_LIMIT = (1 << 53) - 1
"""Line numbers and times stay below this, so that JavaScript counts them exactly."""


@dataclass(frozen=True, order=True)
class StreamKey:
    """All lines of one task of one attempt, over every restart of the task."""

    job_id: uuid.UUID
    attempt: int
    role: Role
    index: int

    @property
    def name(self) -> str:
        """`worker-0`: how the task is called inside its attempt."""
        return f"{self.role}-{self.index}"


class PastTheEnd(YardmasterError):
    """A write that would leave a hole. Nothing has changed; `next_line` says where to go on."""

    code = "past_the_end"

    def __init__(self, first_line: int, next_line: int) -> None:
        super().__init__(
            f"Line {first_line} is past the end: the next line is {next_line}.",
            remedy=f"Send the lines from {next_line} on, or mark those that are lost as a gap.",
        )
        self.next_line = next_line


class LinesRejected(YardmasterError):
    """What was sent is not what it says it is: no whole lines, another number of them, times out of order."""

    code = "invalid"
