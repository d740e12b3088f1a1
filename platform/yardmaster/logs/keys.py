"""What names a stream of lines, and what goes wrong with one. Not here: where streams lie on disk (`store`)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from yardmaster.errors import YardmasterError
from yardmaster.job.spec import Role

LINE_LIMIT = (1 << 53) - 1
"""Line numbers and times stay below this, so that JavaScript counts them exactly."""
WRITER_LIMIT = (1 << 32) - 1
"""The largest number of a writer: what a record of the index has room for."""


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


class OutOfStep(YardmasterError):
    """A write that does not continue where the stream does. Nothing has changed; `next_line` says where it does."""

    def __init__(self, message: str, remedy: str, next_line: int) -> None:
        super().__init__(message, remedy=remedy)
        self.next_line = next_line


class PastTheEnd(OutOfStep):
    """It would leave a hole."""

    code = "past_the_end"

    def __init__(self, first_line: int, next_line: int) -> None:
        super().__init__(
            f"Line {first_line} is past the end: the next line is {next_line}.",
            f"Send the lines from {next_line} on, or mark those that are lost as a gap.",
            next_line,
        )


class WrittenByAnother(OutOfStep):
    """The lines of these numbers are another writer's: they are not those that were sent."""

    code = "written_by_another"

    def __init__(self, first_line: int, next_line: int) -> None:
        super().__init__(
            f"Another writer of this stream has written line {first_line} or one after it.",
            f"Ask where your lines end, and number what comes after them from {next_line} on.",
            next_line,
        )


class LinesRejected(YardmasterError):
    """What was sent is not what it says it is: no whole lines, another number of them, times out of order."""

    code = "invalid"


class JobGone(YardmasterError):
    """The job was deleted, and its logs with it: nothing is written any more."""

    code = "job_gone"
