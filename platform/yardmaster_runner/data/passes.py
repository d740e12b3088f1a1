"""Passes over shards that are streamed: the script's side of the socket that the task's runner serves.

One pass is one iteration over a dataset: an order of shards, and a connection over which they are asked for. A
connection that is gone is made again, so closing one is never wrong; it only releases what the pass had open.

TensorFlow's threads call these functions. One that does so while Python ends never comes back, and TensorFlow waits for
it: the script would hang. So before that all calls fail at once, and the end waits until no more come (`_end`). On a
machine that is very busy one may come later still: a script that has failed is then ended all the same.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import itertools
import json
import os
import random
import socket
import sys
import threading
import time
import weakref
from collections import deque
from typing import Any, Deque, Dict, Iterator, List, Optional, Sequence, Tuple

from yardmaster_runner.data.inputs import DataError, DataUnavailable, Input

MOST_PASSES = 8
"""Of one dataset that stay connected: iterations that were given up half way cannot be told from slow ones."""
TIMEOUT = 60.0
"""Seconds for an answer; the runner gives one at least twice a second."""
QUIET = 0.5
"""Seconds without a call after which TensorFlow's buffers are full: no more calls come then."""
LONGEST_END = 10.0
HANGS_AFTER = 15.0
"""Seconds that Python may take to end once no more calls come."""


class Connection:
    """Requests and answers, one at a time. Safe to use from several threads."""

    def __init__(self, found: Input) -> None:
        self._found = found
        self._lock = threading.Lock()
        self._stream: Any = None
        self._begin: Optional[Dict[str, Any]] = None

    def begin(self, paths: Sequence[str]) -> None:
        """A pass over these shards."""
        self._begin = {"op": "read", "input": self._found.name, "paths": list(paths)}
        with self._lock:
            self._connected()

    def ask(self, **request: Any) -> Dict[str, Any]:
        """The answer. Raises `DataError`, or `DataUnavailable` where the runner cannot be reached."""
        with self._lock:
            return self._exchange(self._connected(), request)

    def close(self) -> None:
        with self._lock:
            if self._stream is not None:
                self._stream.close()
            self._stream = None

    @property
    def is_open(self) -> bool:
        return self._stream is not None

    def _connected(self) -> Any:
        if self._stream is None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
                end.settimeout(TIMEOUT)
                try:
                    end.connect(self._found.socket)
                except OSError as error:
                    raise DataUnavailable("the runner of this task does not answer: %s" % error) from error
                self._stream = end.makefile("rwb")
            if self._begin is not None:
                self._exchange(self._stream, self._begin)
        return self._stream

    def _exchange(self, stream: Any, request: Dict[str, Any]) -> Dict[str, Any]:
        try:
            stream.write(json.dumps(request).encode() + b"\n")
            stream.flush()
            line = stream.readline()
            if not line:
                raise OSError("it has closed the connection")
            answer: Dict[str, Any] = json.loads(line)
        except (OSError, ValueError) as error:
            self._stream = None
            with contextlib.suppress(OSError):
                stream.close()
            raise DataUnavailable("the runner of this task does not answer: %s" % error) from error
        if "error" in answer:
            raise (DataUnavailable if answer.get("may_pass") else DataError)(answer["error"])
        return answer


def listed(found: Input) -> List[Tuple[str, int]]:
    """The shards of an input that is streamed, with their sizes. Raises `DataError`."""
    connection = Connection(found)
    try:
        return [(path, size) for path, size in connection.ask(op="list", input=found.name)["files"]]
    finally:
        connection.close()


def fetched(found: Input, path: str) -> Tuple[Connection, str]:
    """Where one shard is, once it is here; it stays until the connection is closed. Raises `DataError`."""
    connection = Connection(found)
    connection.begin([path])
    return connection, _get(connection, 0)


def _get(connection: Connection, shard: int) -> str:
    while True:
        CALLS.check()
        answer = connection.ask(op="get", shard=shard)
        if "path" in answer:
            return str(answer["path"])


class _Calls:
    """TensorFlow's calls of this module's functions, in the whole process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._last = 0.0
        self._is_over = False

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            self._last = time.monotonic()

    def check(self) -> None:
        """Raises `DataUnavailable` once the script is ending."""
        if self._is_over:
            raise DataUnavailable("the script is ending")

    def end(self, more_may_come: bool = True) -> None:
        """Returns when no more calls come. Where none should, one that was just made may have another behind it."""
        until = time.monotonic() + LONGEST_END
        if more_may_come:
            self._last = time.monotonic()
        while not self._are_quiet() and time.monotonic() < until:
            self._is_over = True  # not before: what the script does at its end may read on
            time.sleep(0.01)

    def _are_quiet(self) -> bool:
        with self._lock:
            return not self._running and time.monotonic() - self._last > QUIET


CALLS = _Calls()
_ALL: "weakref.WeakSet[Any]" = weakref.WeakSet()


def look_after(passes: Any) -> None:
    """Let Python's end wait for TensorFlow's calls of these passes, whose `is_going` says whether more may come."""
    if not _ALL:
        atexit.unregister(_end)
        atexit.register(_end)  # after TensorFlow's import, so before what TensorFlow does at the end
    _ALL.add(passes)


def _end() -> None:
    has_failed = getattr(sys, "last_type", None) is not None
    # After an error TensorFlow reads on: it may have come to the end of all shards, and still ask whether there is one.
    CALLS.end(more_may_come=has_failed or any(one.is_going for one in list(_ALL)))
    if has_failed:  # so the exit code is 1
        faulthandler.dump_traceback_later(HANGS_AFTER, exit=True, file=os.open(os.devnull, os.O_WRONLY))


class Pass:
    """One iteration: its connection, and how many of its shards are still to be read to their ends."""

    def __init__(self, found: Input, count: int) -> None:
        self.connection = Connection(found)
        self.left = count
        self.is_given_out = False
        self.open: Dict[int, str] = {}


class Passes:
    """All passes of one dataset over `paths`: an order of its own for each, where they are shuffled."""

    def __init__(self, found: Input, paths: Sequence[str], *, shuffle: bool, seed: Optional[int]) -> None:
        self._found = found
        self._paths = list(paths)
        self._dice = random.Random(seed) if shuffle else None
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._passes: Dict[int, Pass] = {}
        self._recent: Deque[str] = deque(maxlen=16)
        look_after(self)

    @property
    def is_going(self) -> bool:
        """Whether a pass has not been read to its end."""
        return bool(self._passes)

    def one(self) -> Iterator[Tuple[int, int]]:
        """The shards of one pass, as (pass, shard)."""
        paths = list(self._paths)
        with self._lock:
            number = next(self._numbers)
            if self._dice is not None:
                self._dice.shuffle(paths)
            given_out = [one for one in sorted(self._passes) if self._passes[one].is_given_out]
            given_up = [self._passes.pop(one) for one in given_out[: -MOST_PASSES or None]]
            current = self._passes[number] = Pass(self._found, len(paths))
        for one in given_up:
            one.connection.close()
        with CALLS:
            CALLS.check()
            current.connection.begin(paths)
        try:
            for shard in range(len(paths)):
                with CALLS:
                    CALLS.check()
                yield number, shard
            current.is_given_out = True  # its last shards are still being read
        finally:
            if not current.is_given_out:
                self._end(number)

    def get(self, number: int, shard: int) -> str:
        """The path of a shard, once it is here."""
        with CALLS:
            with self._lock:
                current = self._passes.get(int(number))
            if current is None:
                raise DataUnavailable("the pass over the shards was given up")
            path = _get(current.connection, int(shard))
            current.open[int(shard)] = path
            return path

    def release(self, number: int, shard: int) -> None:
        """The shard was read to its end."""
        with CALLS:
            self._release(int(number), int(shard))

    def _release(self, number: int, shard: int) -> None:
        with self._lock:
            current = self._passes.get(number)
            if current is None:
                return
            self._recent.append(current.open.pop(shard, ""))
            current.left -= 1
        if not current.left:
            self._end(number)
        elif current.connection.is_open:
            current.connection.ask(op="release", shard=shard)

    def open_shards(self) -> List[str]:
        """The paths of those that are being read, or were just now: TensorFlow reads on after an error."""
        with self._lock:
            return [path for one in self._passes.values() for path in list(one.open.values())] + list(self._recent)

    def _end(self, number: int) -> None:
        with self._lock:
            current = self._passes.pop(number, None)
        if current is not None:
            self._recent.extend(list(current.open.values()))
            current.connection.close()
