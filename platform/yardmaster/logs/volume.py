"""How many bytes one attempt's log holds and may hold: counted on disk beside its streams, so that every process and
every restart knows, and no write asks the database.

Two bounds. The limit of an attempt is known here. What the attempt's namespace may hold is not: its bytes are granted
in portions (`NeedsGrant` asks for one), and where a grant is refused, or the limit reached, the volume is closed: lines
are dropped and counted from there on, but for the tails that tasks send at their end. Not here: who grants, streams.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Literal

from yardmaster.errors import Unavailable, YardmasterError
from yardmaster.quantity import format_bytes

NEVER = (1 << 53) - 1
GAP_BOUND_UNIT = 1 << 20
_LARGEST_BOUND = (1 << 28) - 1
_BODY = struct.Struct("<7Q")
_CHECKSUM = struct.Struct("<I")


class Cause(IntEnum):
    """Why lines are missing."""

    LOST = 0
    """The task had to drop them: its portal was away for too long, or its disk was full."""
    LOG_LIMIT = 1
    NAMESPACE_LIMIT = 2
    STORAGE_QUOTA = 3
    LOG_QUOTA = 4


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no more lines are taken, and the bound that was reached, in bytes."""

    cause: Cause
    bound: int

    def pack(self) -> int:
        """In 32 bits, as a gap's record keeps it. The bound to the MiB."""
        return self.cause | min(-(-self.bound // GAP_BOUND_UNIT), _LARGEST_BOUND) << 4

    @classmethod
    def unpack(cls, value: int) -> Refusal:
        try:
            return cls(Cause(value & 15), (value >> 4) * GAP_BOUND_UNIT)
        except ValueError:  # of a later version
            return LOST


LOST = Refusal(Cause.LOST, 0)


def reason_of(why: Refusal) -> str:
    """Why lines are missing, and what helps, in words for people."""
    bound = format_bytes(why.bound)
    match why.cause:
        case Cause.LOG_LIMIT:
            return f"log limit of {bound} per attempt reached (YARDMASTER_LOG_LIMIT)"
        case Cause.NAMESPACE_LIMIT:
            return f"log limit of {bound} per namespace reached (YARDMASTER_LOG_LIMIT_NAMESPACE); delete older jobs"
        case Cause.LOG_QUOTA:
            return f"the namespace's log quota of {bound} is full; delete older jobs, or ask for more log space"
        case Cause.STORAGE_QUOTA:
            return f"the namespace's storage quota of {bound} is full; delete data, or ask for more storage"
    return "the portal was away for too long, or the task's disk was full"


class NeedsGrant(YardmasterError):
    """The namespace must be charged before these lines are taken: `needed` bytes for the attempt in all. Nothing has
    changed; once `LogStore.grant` or `LogStore.refuse` was called, the same write is taken or dropped."""

    code = "needs_grant"
    retryable = True

    def __init__(self, needed: int) -> None:
        super().__init__(f"The attempt's log needs a grant of {needed} bytes.")
        self.needed = needed


@dataclass(frozen=True, slots=True)
class Volume:
    """The count of one attempt. `granted`: what its namespace was charged; `tails` and `ends`: what was taken while
    closed, as last lines of tasks and as marks of their ends; closed until a unix time in milliseconds, 0: it is open.
    """

    used: int = 0
    granted: int = 0
    tails: int = 0
    cause: int = 0
    bound: int = 0
    closed_until: int = 0
    ends: int = 0

    def refusal(self, limit: int, now: int) -> Refusal | None:
        """Why nothing is taken now; None when something is. A limit that was raised opens what it had closed."""
        is_raised = self.cause == Cause.LOG_LIMIT and limit > self.bound
        if now >= self.closed_until or is_raised:
            return None
        return Refusal(Cause(self.cause), self.bound)

    def closed(self, refusal: Refusal, until: int = NEVER) -> Volume:
        return replace(self, cause=int(refusal.cause), bound=refusal.bound, closed_until=until)

    def with_lines(self, size: int, limit: int, now: int, reserve: int = 0) -> Counted:
        """With `size` more bytes of lines, or why they are dropped. `reserve`: they are a task's last lines, and so
        many bytes of those are taken while the volume is closed. Raises `NeedsGrant`."""
        return self._with("tails", size, limit, now, reserve)

    def with_end(self, size: int, limit: int, now: int, reserve: int) -> Counted:
        """The same for a mark that a stream has ended; `reserve` is for those."""
        return self._with("ends", size, limit, now, reserve)

    def _with(self, kind: Literal["tails", "ends"], size: int, limit: int, now: int, reserve: int) -> Counted:
        """With `size` more bytes; while closed, counted as of this kind and only up to `reserve` of it. Or closed, and
        why."""
        refusal = self.refusal(limit, now)
        if refusal is None and self.used + size > limit:
            refusal = Refusal(Cause.LOG_LIMIT, limit)
        if refusal is None:
            if self.used + size > self.granted:
                raise NeedsGrant(self.used + size)
            return replace(self, used=self.used + size, closed_until=0), None
        volume = self.closed(refusal, self.closed_until if now < self.closed_until else NEVER)
        taken = getattr(volume, kind) + size
        if taken <= reserve:
            return replace(volume, used=volume.used + size, **{kind: taken}), None
        return volume, refusal


Counted = tuple[Volume, Refusal | None]
"""The count after a write, and why its bytes are not taken."""


class VolumeFile:
    """The count as a file. `recount` tells what the streams hold, for one that is new or damaged."""

    def __init__(self, path: Path, recount: Callable[[], int]) -> None:
        self._path = path
        self._recount = recount

    def exists(self) -> bool:
        return self._path.exists()

    def read(self) -> Volume:
        """As it is now, without waiting for anybody; an empty one where there is none."""
        try:
            return _unpack(self._path.read_bytes()) or Volume()
        except FileNotFoundError:
            return Volume()

    @contextlib.contextmanager
    def changed(self) -> Iterator[list[Volume]]:
        """The count, locked, as the one item of a list; what that is in the end is written. Raises `Unavailable`."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except FileNotFoundError as error:
            raise Unavailable("The log of this attempt is being removed.") from error
        except OSError as error:
            raise Unavailable(f"The log store cannot be opened: {error.strerror}.") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            before = _unpack(os.pread(file, _BODY.size + _CHECKSUM.size, 0))
            held = [before or Volume(used=self._recount())]
            yield held
            if held[0] != before:
                _write(file, held[0])
        finally:
            os.close(file)


def _write(file: int, volume: Volume) -> None:
    body = _BODY.pack(
        volume.used, volume.granted, volume.tails, volume.cause, volume.bound, volume.closed_until, volume.ends
    )
    try:
        os.pwrite(file, body + _CHECKSUM.pack(zlib.crc32(body)), 0)
    except OSError as error:
        message = f"The log store cannot write: {error.strerror}."
        raise Unavailable(message, remedy="Free disk space for the logs, then send again.") from error


def _unpack(raw: bytes) -> Volume | None:
    body = raw[: _BODY.size]
    if len(raw) < _BODY.size + _CHECKSUM.size or _CHECKSUM.unpack_from(raw, _BODY.size)[0] != zlib.crc32(body):
        return None
    return Volume(*_BODY.unpack(body))
