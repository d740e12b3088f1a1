"""Reading the partitions of a cache: several connections at once, each one partition after the other.

A scan of a partition that is cut begins again, on the node that holds the partition now. Its rows may then come in
another order, so the keys of the rows that were handed out are kept until the partition is done, and rows with these
keys are passed over: nothing is lost, and nothing comes twice. The memory for it is what the keys of one partition take
on the wire (9 bytes for a number), for each connection.
"""

from __future__ import annotations

import struct
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import numpy as np

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.cluster import Cluster, scan_request, translated
from yardmaster_runner.data.ignite_reader.columns import Columns
from yardmaster_runner.data.ignite_reader.connection import Connection
from yardmaster_runner.data.ignite_reader.decoding import Decoder
from yardmaster_runner.data.ignite_reader.errors import (
    ConnectionLost,
    IgniteQueryError,
    IgniteUnavailable,
    ServerRefusal,
)
from yardmaster_runner.data.ignite_reader.rows import places
from yardmaster_runner.data.passes import CALLS

MOST_RETRIES = 8
"""Times that a partition is tried again without one more row."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 3.0
LOOK = 0.5
"""Seconds after which one that waits for rows looks whether the script is ending."""


@dataclass(frozen=True)
class Found:
    """Rows of a page that are handed out: their columns, and how many there are."""

    columns: Columns
    rows: int


@dataclass(frozen=True)
class Table:
    """What is read: a cache, by its number and in words, and how many rows a page has."""

    cache: int
    where: str
    page_rows: int
    is_local: bool = False


class HandedOut:
    """The keys of the rows of one partition that were handed out, as they are on the wire."""

    def __init__(self) -> None:
        self._parts: List[Tuple[bytes, Any]] = []
        self._keys: Optional[Set[bytes]] = None

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, page: memoryview, keys: Any, ends: Any) -> None:
        """The keys between these places."""
        sizes = ends - keys
        if len(sizes) and (sizes == sizes[0]).all():
            size = int(sizes[0])
            views = np.ndarray((len(page) - size + 1, size), np.uint8, page, 0, (1, 1))
            self._parts.append((views[keys].tobytes(), size))
        else:
            taken = [bytes(page[begin:end]) for begin, end in zip(keys.tolist(), ends.tolist())]
            self._parts.append((b"".join(taken), sizes.astype(np.int32)))
        self._keys = None

    def others(self, page: memoryview, keys: Any, ends: Any) -> Any:
        """Which of the rows were not handed out yet, as a mask."""
        known = self._known()
        pairs = zip(keys.tolist(), ends.tolist())
        return np.fromiter((bytes(page[begin:end]) not in known for begin, end in pairs), bool, len(keys))

    def _known(self) -> Set[bytes]:
        if self._keys is None:
            self._keys = set()
            for whole, sizes in self._parts:
                if isinstance(sizes, int):
                    self._keys.update(whole[at : at + sizes] for at in range(0, len(whole), sizes))
                else:
                    ends = np.cumsum(sizes).tolist()
                    self._keys.update(whole[end - size : end] for end, size in zip(ends, sizes.tolist()))
        return self._keys


class PartitionReader:
    """Reads partitions, one at a time, over connections of its own. For one thread."""

    def __init__(self, cluster: Cluster, table: Table, decoder: Decoder) -> None:
        self._cluster = cluster
        self._table = table
        self._decoder = decoder
        self._connections: Dict[bytes, Connection] = {}

    def close(self) -> None:
        for one in self._connections.values():
            one.close()
        self._connections.clear()

    def read(self, partition: int) -> Iterator[Found]:
        """All rows of a partition, each once. Raises `IgniteUnavailable`, `IgniteDataError`."""
        given, tries, pause = HandedOut(), 0, FIRST_PAUSE
        while True:
            connection = self._connection(partition)
            try:
                for found in self._pages(connection, partition, given):
                    if found.rows:
                        tries, pause = 0, FIRST_PAUSE
                        yield found
                return
            except ConnectionLost as error:
                self._forget(connection)
                tries += 1
                if tries > MOST_RETRIES:
                    raise IgniteUnavailable("%s. %d attempts in a row failed." % (error, tries)) from error
            except ServerRefusal as error:
                self._judge(connection, error, partition, tries)
                tries += 1
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _judge(self, connection: Connection, error: ServerRefusal, partition: int, tries: int) -> None:
        """Raises what cannot get better; else the partition is read again: a node has left while it asked another."""
        said = translated(error, self._table.where)
        if said is not error:
            raise said from error
        if tries >= MOST_RETRIES:
            message = "%s: partition %d cannot be read: %s. If nodes have failed, bring them back or reset the lost "
            message += "partitions."
            raise IgniteQueryError(message % (self._table.where, partition, error)) from error
        self._forget(connection)

    def _connection(self, partition: int) -> Connection:
        owner = self._cluster.owner(self._table.cache, partition) or b""
        found = self._connections.get(owner)
        if found is None:
            found = self._connections[owner] = self._cluster.connect(owner or None)
        return found

    def _forget(self, connection: Connection) -> None:
        for node, one in list(self._connections.items()):
            if one is connection:
                del self._connections[node]
        self._cluster.lost(connection)

    def _pages(self, connection: Connection, partition: int, given: HandedOut) -> Iterator[Found]:
        """The rows of a partition from its first page on, without those that were handed out before."""
        pages = _Pages(connection, self._table, partition)
        is_repeated = bool(given)
        while True:
            page, at, rows, has_more = pages.next()
            yield self._found(page, at, rows, given, is_repeated, has_more)
            self._cluster.note_topology(connection.topology)
            if not has_more:
                return

    def _found(
        self, page: memoryview, at: int, rows: int, given: HandedOut, is_repeated: bool, has_more: bool
    ) -> Found:
        (keys, values), _ = places(page, at, rows)
        if is_repeated:
            mask = given.others(page, keys, values)
            keys, values = keys[mask], values[mask]
        columns = self._decoder.columns(page, {"key": keys, "val": values})
        if has_more:
            given.add(page, keys, values)
        return Found(columns, len(keys))


class _Pages:
    """The pages of one scan. The next one is asked for while this one is on its way: the server makes it meanwhile."""

    def __init__(self, connection: Connection, table: Table, partition: int) -> None:
        self._connection = connection
        self._page_rows = table.page_rows
        self._cursor = b""
        self._asked = connection.send(
            wire.OP_QUERY_SCAN, scan_request(table.cache, partition, table.page_rows, table.is_local)
        )
        self._next = 0

    def next(self) -> Tuple[memoryview, int, int, bool]:
        """A page, where its rows begin, how many it has, and whether there are more."""
        self._next = 0
        page = self._connection.receive(self._asked, self._looked).body
        at = 0 if self._cursor else 8
        if at:
            self._cursor = bytes(page[:at])
        rows = struct.unpack_from("<i", page, at)[0]
        has_more = bool(page[len(page) - 1])
        if has_more:
            self._asked = self._next or self._connection.send(wire.OP_QUERY_SCAN_PAGE, self._cursor)
        elif self._next:
            # The last page was full: what was asked for in vain is refused, and passed over with the next answer.
            self._next = 0
        return page, at + 4, rows, has_more

    def _looked(self, begin: memoryview) -> None:
        """A full page has most likely another one behind it."""
        cursor, at = (self._cursor, 0) if self._cursor else (bytes(begin[:8]), 8)
        if struct.unpack_from("<i", begin, at)[0] == self._page_rows:
            self._next = self._connection.send(wire.OP_QUERY_SCAN_PAGE, cursor)


class Scan:
    """One pass over partitions: rows as they come, of several partitions at once. For one reader."""

    def __init__(
        self, partitions: Sequence[int], reader: Callable[[], PartitionReader], connections: int, ahead: int
    ) -> None:
        self._left: Deque[int] = deque(partitions)
        self._ready: Deque[Any] = deque()
        self._changed = threading.Condition()
        self._ahead = max(1, ahead)
        self._is_over = False
        self._running = max(1, min(connections, len(partitions))) if partitions else 0
        for _ in range(self._running):
            threading.Thread(target=self._work, args=(reader,), daemon=True, name="ignite").start()

    def __iter__(self) -> Iterator[Found]:
        """Raises what a thread has met, after the rows that came before."""
        try:
            while True:
                with self._changed:
                    while not self._ready and self._running:
                        self._changed.wait(LOOK)
                        CALLS.check()
                    if not self._ready:
                        return
                    found = self._ready.popleft()
                    self._changed.notify_all()
                if isinstance(found, BaseException):
                    raise found
                yield found
        finally:
            self.close()

    def close(self) -> None:
        """No more rows are wanted."""
        with self._changed:
            self._is_over = True
            self._ready.clear()
            self._changed.notify_all()

    def _work(self, reader: Callable[[], PartitionReader]) -> None:
        own = None
        try:
            own = reader()
            while True:
                with self._changed:
                    if self._is_over or not self._left:
                        return
                    partition = self._left.popleft()
                for found in own.read(partition):
                    if not self._handed(found):
                        return
        except Exception as error:  # noqa: BLE001 - the reader of the rows gets it
            self._handed(error)
        finally:
            if own is not None:
                own.close()
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _handed(self, found: Any) -> bool:
        """Whether it is still wanted. Waits while enough is ready."""
        with self._changed:
            while len(self._ready) >= self._ahead and not self._is_over:
                self._changed.wait()
            if self._is_over:
                return False
            self._ready.append(found)
            if isinstance(found, BaseException):
                self._left.clear()
            self._changed.notify_all()
            return True
