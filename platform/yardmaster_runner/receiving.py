"""From a connection into a file, and past a checksum.

Where the system allows it, what comes goes from the connection to the file within the system (`splice`), and is read
back from the system's memory for the checksum: of three copies of each byte one is left out, which saves a quarter of
the processor time of a large download. So the checksum is of what the file holds, not of what came. Encrypted
connections, answers in chunks, small files and other systems go through this program's memory.

Not here: what is asked for, and what an answer means.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import os
import select
from typing import Any, Callable, Iterator, Optional, Tuple, Union

Buffer = Union[bytes, memoryview]

PIECE = 256 << 10
"""Bytes that are worked on at a time: few enough to stay in a processor's cache. Writing 1 MiB at a time took up to
four times the processor time where the system's free memory was in small pieces."""
_PIPE = 1 << 20
"""Bytes that are moved at a time; as large as a pipe may be without privileges."""
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP)
"""A file system, a kind of connection or a sandbox without `splice`."""


class Interrupted(Exception):
    """The connection failed, or was silent for too long."""


class Incoming:
    """A file that is received: `size` bytes of it are there. Close it when it is complete or given up."""

    def __init__(
        self,
        path: str,
        look: Optional[Callable[[memoryview], object]],
        space: memoryview,
        *,
        continues: bool = False,
    ) -> None:
        """Raises OSError. `look` is given each byte once, in their order, in pieces that are good until it returns;
        most of them lie in `space`. `continues`: what the file holds already counts as received, and is looked at."""
        self.size = 0
        emptied = 0 if continues else os.O_TRUNC
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | emptied | os.O_CLOEXEC, 0o666)
        self._look = look
        self._space = space
        self._pipe = None  # type: Optional[Tuple[int, int]]
        self._moves_from = None  # type: Optional[http.client.HTTPResponse]
        self._may_move = hasattr(os, "splice")
        if continues:
            self._begin_at_end()

    def __enter__(self) -> "Incoming":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """May be repeated."""
        for descriptor in (self._file, *(self._pipe or ())):
            if descriptor >= 0:
                os.close(descriptor)
        self._file, self._pipe = -1, None

    def write(self, data: Buffer) -> None:
        """Bytes that came through this program's memory. Raises OSError."""
        view = memoryview(data)
        self._write_all(view)
        if self._look:
            self._look(view)
        self.size += len(view)

    def take(self, answer: http.client.HTTPResponse, is_plain: bool, seconds: float) -> int:
        """Receive more of an answer; the number of bytes, 0 at its end, also where that comes too early.

        `is_plain`: the connection is not encrypted. `seconds`: how long it may be silent. Raises `Interrupted` where
        the connection fails, and OSError where the file does.
        """
        if is_plain and self._may_move and not answer.chunked and (answer.length or 0) > PIECE:
            count = self._move(answer, seconds)
            if count:
                return count
        with _interrupted():
            count = answer.readinto(self._space)
        self.write(self._space[:count])
        return count

    def _begin_at_end(self) -> None:
        try:
            self._look_at(os.lseek(self._file, 0, os.SEEK_END))
        except BaseException:
            self.close()
            raise

    def _move(self, answer: http.client.HTTPResponse, seconds: float) -> int:
        """What has come of the answer. 0: nothing more comes, or this system cannot move it."""
        if self._moves_from is not answer:
            self._moves_from = answer
            return self._take_buffered(answer)
        if self._pipe is None:
            self._pipe = _new_pipe()
        assert answer.length is not None
        count = self._fill(self._pipe[1], answer.fileno(), min(answer.length, _PIPE), seconds)
        answer.length -= count
        self._empty(self._pipe[0], count)
        self._look_at(count)
        return count

    def _take_buffered(self, answer: http.client.HTTPResponse) -> int:
        """What came together with the answer's head. From here on the answer's own buffer is empty."""
        with _interrupted():
            count = len(answer.fp.peek(1))
            count = answer.readinto(self._space[:count])
        self.write(self._space[:count])
        return count

    def _fill(self, pipe: int, connection: int, most: int, seconds: float) -> int:
        """The empty pipe, with what the connection has, which is waited for."""
        with _interrupted():
            while True:
                try:
                    return os.splice(connection, pipe, most, flags=os.SPLICE_F_NONBLOCK)
                except BlockingIOError:
                    _wait(connection, seconds)
                except OSError as error:
                    if error.errno not in _CANNOT:
                        raise
                    self._may_move = False
                    return 0

    def _empty(self, pipe: int, left: int) -> None:
        while left:
            try:
                left -= os.splice(pipe, self._file, left)
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
                self._may_move = False
                data = os.read(pipe, left)
                self._write_all(memoryview(data))
                left -= len(data)

    def _look_at(self, count: int) -> None:
        """The bytes that were moved into the file last."""
        end = self.size + count
        while self._look and self.size < end:
            found = os.preadv(self._file, [self._space[: end - self.size]], self.size)
            if not found:
                raise OSError(errno.EIO, "the file became shorter while it was received")
            self._look(self._space[:found])
            self.size += found
        self.size = end

    def _write_all(self, view: memoryview) -> None:
        while view:
            view = view[os.write(self._file, view) :]


def _new_pipe() -> Tuple[int, int]:
    import fcntl  # where there is splice

    pipe = os.pipe()
    with contextlib.suppress(OSError):  # a user may have so many large pipes
        fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, _PIPE)
    return pipe


def _wait(connection: int, seconds: float) -> None:
    """Until it has something. Raises OSError."""
    watch = select.poll()
    watch.register(connection, select.POLLIN)
    if not watch.poll(seconds * 1000):
        raise OSError(errno.ETIMEDOUT, "timed out")


@contextlib.contextmanager
def _interrupted() -> Iterator[None]:
    try:
        yield
    except (http.client.HTTPException, OSError) as error:
        raise Interrupted(str(error) or type(error).__name__) from error
