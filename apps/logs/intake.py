"""What every write of log lines goes through, in the view and before it (`append_at_once`): whose token it is, the
lines unpacked within bounds, the one append to the store, and the answer.

What is wrong with a write is raised as an API problem. Not here: what a write costs its namespace
(`apps.jobs.state.log_charges`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib.auth.models import AnonymousUser
from rest_framework.request import Request

from apps.api.inflating import inflated
from apps.errors import Invalid, TooLarge
from apps.jobs.state.log_charges import refusal_json
from apps.jobs.state.task_auth import TaskIdentity, TaskTokenAuthentication
from apps.stores import counted_log
from yardmaster.errors import Problem
from yardmaster.logs.keys import StreamKey
from yardmaster.logs.lines import has_longer_line
from yardmaster.logs.store import Written
from yardmaster_runner.masking import MASK

MOST_BYTES = 1 << 20
MOST_INFLATED = 8 << 20
LONGEST_LINE = 128 << 10
"""Runners cut lines at 64 KiB; other writers may not make a line that no reader can take."""
MOST_MARKS = 4096
TOKEN_REMEMBERED = 5.0
"""Seconds. That much longer a token may write after it was outlived."""
JUDGED = "yardmaster.log_write"
"""Where a request's scope keeps what became of its body."""
TAIL_RESERVE = 256 << 10
"""Bytes for each task of an attempt whose log takes no more: its last lines, of several starts, say why it failed."""


class RememberedTaskToken(TaskTokenAuthentication):
    """The same, but a token that was good is believed for a few seconds without asking the database."""

    known: ClassVar[dict[str, tuple[float, TaskIdentity]]] = {}

    @classmethod
    def identity_behind(cls, header: str) -> TaskIdentity | None:
        """Whom this `Authorization` header stood for a few seconds ago; None: no task, or it is too long ago."""
        until, identity = cls.known.get(header, (0.0, None))
        return identity if until > time.monotonic() else None

    def authenticate(self, request: Request) -> tuple[AnonymousUser, TaskIdentity] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        identity = self.identity_behind(header)
        if identity is not None:
            return AnonymousUser(), identity
        found = super().authenticate(request)
        if found is not None:
            if len(self.known) >= 10_000:
                self.known.clear()
            self.known[header] = (time.monotonic() + TOKEN_REMEMBERED, found[1])
        return found


@dataclass(frozen=True)
class Judged:
    """What became of a body that was looked at before the view: its lines, or what is wrong with the write."""

    data: bytes = b""
    problem: Exception | None = None

    def lines(self) -> bytes:
        """The lines. Raises the problem."""
        if self.problem is not None:
            raise self.problem
        return self.data


def when_full(identity: TaskIdentity, tail: int) -> dict[str, Any]:
    """What becomes of lines that a full log has no room for, as options of `append`. `tail` 1: they are a task's last
    ones, of which some are kept; 0: they are left to the task; -1: they are dropped, for it does not know of any bound.
    """
    if tail == 1:
        return {"tail_reserve": TAIL_RESERVE * sum(identity.replicas.values())}
    return {"leave": tail == 0}


def next_line_json(written: Written) -> dict[str, Any]:
    """The answer to a write. `full` says that lines are dropped, and why."""
    answer: dict[str, Any] = {"next_line": written.next_line}
    if written.refusal is not None:
        answer["full"] = refusal_json(written.refusal)
    return answer


def lines_of(raw: bytes, headers: Mapping[str, str]) -> bytes:
    """The lines of a body with these headers (names in lower case), without the token that sent them."""
    data = lines_in(raw, headers.get("content-encoding", "identity").lower())
    return without_token(data, headers.get("authorization", ""))


def append(stream: StreamKey, data: bytes, marks: str, **options: Any) -> Written:
    """Keep the lines, with the times that the `X-Times` header `marks` says, or now. Lines that are there already
    change nothing. Raises `NeedsGrant` where more of the namespace's storage has to be taken first, and what the store
    does."""
    times = times_in(marks) or [(0, time.time_ns() // 1_000_000)]
    return counted_log().append(stream, data=data, times=times, **options)


def lines_in(raw: bytes, encoding: str) -> bytes:
    """The lines of a body of at most `MOST_BYTES` (one more byte tells that it was longer)."""
    if len(raw) > MOST_BYTES:
        raise TooLarge(f"A request holds at most {MOST_BYTES} bytes of log.", remedy="Send fewer lines at once.")
    data = inflated(raw, encoding, MOST_INFLATED, "inflated log", "Send fewer lines.")
    if has_longer_line(data, LONGEST_LINE):
        raise TooLarge(f"A line holds at most {LONGEST_LINE} bytes.", remedy="Cut longer lines into several.")
    return data


def without_token(data: bytes, authorization: str) -> bytes:
    """The lines without the token that sent them: an older runner does not look for it in what its script prints. No
    line becomes longer by it."""
    token = authorization.rpartition(" ")[2].encode()
    return data.replace(token, MASK) if len(token) > len(MASK) and token in data else data


def times_in(header: str) -> list[tuple[int, int]]:
    """The marks of an `X-Times` header, `offset:unix ms,…`; none in an empty one."""
    if not header:
        return []
    try:
        times = [(int(offset), int(at)) for offset, _, at in (mark.partition(":") for mark in header.split(","))]
    except ValueError:
        times = []
    if not times or len(times) > MOST_MARKS:
        message = f"This is no list of at most {MOST_MARKS} marks offset:milliseconds."
        raise Invalid([Problem("X-Times", "invalid", message, "Write 0:1700000000000,12:1700000000100.", header[:100])])
    return times
