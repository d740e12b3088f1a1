"""Connections of a portal to Apache Ignite: kept between requests, made again when they are lost, and never too many.

Every step that is run here may be repeated: what it does twice is what it does once. So one whose connection is lost is
run again on another. Not here: what is asked (`ignite_rows`, `ignite_pieces`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from yardmaster.errors import Unavailable
from yardmaster.storage.base import StorageFull
from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.access import DEFAULT_PORT, Access, addresses_of, tls_context
from yardmaster_runner.data.ignite_reader.cluster import Cluster
from yardmaster_runner.data.ignite_reader.connection import Connection
from yardmaster_runner.data.ignite_reader.errors import (
    ConnectionLost,
    IgniteDataError,
    IgniteSignInError,
    IgniteUnavailable,
    ServerRefusal,
)

ANSWER_SECONDS = 30.0
"""For which one answer is waited for."""
PATIENCE = 10.0
"""Seconds for which a step is begun again, and for which a free connection is waited for."""
MOST_CONNECTIONS = 16
"""Of one process."""
_PAUSES = (0.0, 0.1, 0.3, 1.0, 2.0)
_REMEDY = "It is tried again. An administrator checks that Ignite runs, and the settings YARDMASTER_IGNITE_STORE…"
_FULL = ("out of memory", "outofmemory", "no space left")
T = TypeVar("T")


class IgniteAway(Unavailable):
    """Apache Ignite does not answer, or cannot do now what it was asked for."""

    code = "ignite_unavailable"


def access_of(hosts: str, username: str = "", password_file: str = "", certificate_file: str = "") -> Access:
    """How the portal comes in. Raises `ValueError`."""
    try:
        password = Path(password_file).read_text().strip() if password_file else None
        return Access(
            addresses_of(hosts, DEFAULT_PORT), username or None, password, tls_context(certificate_file or None),
            timeout=ANSWER_SECONDS,
        )  # fmt: skip
    except (OSError, UnicodeDecodeError, IgniteDataError) as error:
        raise ValueError(str(error)) from error


class Link:
    """Safe to use from several threads. `make` is run where tables or caches are found to be missing."""

    def __init__(self, access: Access, make: Callable[[Connection], None]) -> None:
        self._access = access
        self._make = make
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._process = 0
        self._cluster = Cluster(access, PATIENCE / 2)

    def run(self, do: Callable[[Connection], T]) -> T:
        """What `do` returns, which may be run several times. Raises `IgniteAway`, `StorageFull`, and `ServerRefusal`
        for what the server refuses for good."""
        until = time.monotonic() + PATIENCE
        said = ""
        for pause in _PAUSES:
            time.sleep(pause)
            try:
                with self._borrowed() as connection:
                    return self._done(do, connection)
            except ServerRefusal as error:
                if not _is_passing(error):
                    raise _judged(error) from error
                said = str(error)
            except (ConnectionLost, IgniteUnavailable) as error:
                said = str(error)
            except IgniteSignInError as error:
                remedy = "Check YARDMASTER_IGNITE_STORE_USER and …_PASSWORD_FILE."
                raise IgniteAway(f"Apache Ignite does not let the portal in: {error}", remedy=remedy) from error
            except IgniteDataError as error:
                raise IgniteAway(f"Apache Ignite cannot be used: {error}", remedy=_REMEDY) from error
            if time.monotonic() > until:
                break
        raise IgniteAway(f"The store in Apache Ignite does not answer: {said}", remedy=_REMEDY)

    def make(self) -> None:
        """Make the tables and the cache now."""
        self.run(self._make)

    def close(self) -> None:
        """End all connections that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for one in idle:
            one.close()

    def _done(self, do: Callable[[Connection], T], connection: Connection) -> T:
        try:
            return do(connection)
        except ServerRefusal as error:
            if do is self._make or not _is_unmade(error):
                raise
        self._make(connection)  # a cluster that keeps nothing on disk has started again, or this is the first object
        return do(connection)

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        if not self._free.acquire(timeout=PATIENCE):
            raise IgniteAway(f"All {MOST_CONNECTIONS} connections to Apache Ignite are in use.", remedy=_REMEDY)
        try:
            connection = self._taken()
            try:
                yield connection
            except ServerRefusal:
                self._give_back(connection)
                raise
            except BaseException:
                connection.close()  # what of an answer was read is not known
                raise
            self._give_back(connection)
        except ConnectionLost:
            self.close()  # to the same node, as a rule
            raise
        finally:
            self._free.release()

    def _taken(self) -> Connection:
        with self._lock:
            if self._process != os.getpid():  # two processes must not share a connection
                self._idle, self._process = [], os.getpid()
                self._cluster = Cluster(self._access, PATIENCE / 2)
            if self._idle:
                return self._idle.pop()
            cluster = self._cluster
        return cluster.connect()

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            self._idle.append(connection)


def _is_unmade(error: ServerRefusal) -> bool:
    said = str(error)
    return error.status == wire.STATUS_NO_SUCH_CACHE or ("able" in said and "not found" in said)


def _is_passing(error: ServerRefusal) -> bool:
    """Whether the server may take it back in a moment: nodes have come or gone while it was at it."""
    said = str(error).lower()
    return error.status == wire.STATUS_INVALID_NODE_STATE or any(
        word in said for word in ("topology", "node left", "node has left", "failed to execute", "retry", "stopping")
    )


def _judged(error: ServerRefusal) -> Exception:
    said = str(error)
    if any(word in said.lower() for word in _FULL):
        remedy = "Delete checkpoints that are no longer needed, or ask an administrator for more memory in Ignite."
        return StorageFull(f"The store in Apache Ignite is full: {said[:300]}", remedy=remedy)
    if error.status == wire.STATUS_NOT_ALLOWED:
        remedy = "An administrator lets the user of YARDMASTER_IGNITE_STORE_USER read and write the portal's caches."
        return IgniteAway(f"Apache Ignite does not allow it: {said[:300]}", remedy=remedy)
    return error
