"""The nodes of a cluster: their addresses, which of them holds which partition, and connections to them.

Any node answers for any partition; one that holds it is faster. So what is known here may be out of date without harm:
it is asked for again when an answer says that the topology has changed, and when a connection is lost.
"""

from __future__ import annotations

import struct
import threading
import time
from typing import Dict, FrozenSet, List, Optional, Sequence

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.access import Access, Address
from yardmaster_runner.data.ignite_reader.connection import Connection, Topology
from yardmaster_runner.data.ignite_reader.errors import (
    ConnectionLost,
    IgniteCacheError,
    IgnitePartitionError,
    IgniteSignInError,
    IgniteUnavailable,
    ServerRefusal,
)

PATIENCE = 60.0
"""Seconds for which no server at all may answer."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
AVOIDED = 5.0
"""Seconds for which an address that did not answer is not tried again, where there are others."""


class Cluster:
    """Safe to use from several threads; connections that it makes are not."""

    def __init__(self, access: Access, patience: float = PATIENCE) -> None:
        self._access = access
        self._patience = patience
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._shared: Optional[Connection] = None
        self._nodes: Dict[bytes, List[Address]] = {}
        self._owners: Dict[int, Dict[int, bytes]] = {}
        self._reached: Dict[bytes, Address] = {}
        self._avoided: Dict[Address, float] = {}
        self._topology: Optional[Topology] = None

    def close(self) -> None:
        with self._asking:
            if self._shared is not None:
                self._shared.close()
            self._shared = None

    def ask(self, operation: int, body: bytes = b"") -> wire.Reader:
        """The answer of any node, over a connection of its own. Raises `IgniteUnavailable`, `ServerRefusal`."""
        with self._asking:
            until = time.monotonic() + self._patience
            while True:
                if self._shared is None:
                    self._shared = self._any(until)
                try:
                    return wire.Reader(bytes(self._shared.ask(operation, body).body))
                except ConnectionLost as error:
                    self._shared.close()
                    self._shared = None
                    if time.monotonic() > until:
                        raise IgniteUnavailable("%s. No other server answers." % error) from error

    def connect(self, node: Optional[bytes] = None) -> Connection:
        """A connection to this node where it can be reached, else to any. Raises `IgniteUnavailable` after a time in
        which none could, and `IgniteDataError` where we are refused."""
        for address in self._of_node(node):
            try:
                return self._made(address)
            except ConnectionLost:
                self._avoid(address)
        return self._any(time.monotonic() + self._patience)

    def home(self) -> bytes:
        """The node at the address that was given."""
        with self._asking:
            if self._shared is None:
                self._shared = self._any(time.monotonic() + self._patience)
            return self._shared.node

    def has(self, feature: int) -> bool:
        """Whether the server has this optional part of the protocol. Raises `IgniteUnavailable`."""
        self.home()
        return self._shared is not None and bool(self._shared.features >> feature & 1)

    def is_divided(self, cache: int) -> bool:
        """Whether partitions lie on different nodes, by a rule that the cluster tells."""
        return bool(self._owners_of(cache))

    def owner(self, cache: int, partition: int) -> Optional[bytes]:
        """The node that holds a partition; None where that is not known."""
        return self._owners_of(cache).get(partition)

    def addresses(self, cache: int, partition: int) -> FrozenSet[str]:
        """Those of the node that holds a partition, as it says them; none where that is not known."""
        owner = self.owner(cache, partition)
        with self._lock:
            return frozenset(name for name, _ in self._nodes.get(owner or b"", ()))

    def partitions(self, cache: int) -> int:
        """How many partitions a cache has. Raises `IgniteCacheError`."""
        owners = self._owners_of(cache)
        return max(owners) + 1 if owners else self._probed(cache)

    def held_by(self, cache: int, node: bytes) -> List[int]:
        """The partitions that a node holds."""
        return sorted(one for one, owner in self._owners_of(cache).items() if owner == node)

    def note_topology(self, topology: Optional[Topology]) -> None:
        """A server has told of a version of the topology: what is known of an older one is asked for again."""
        with self._lock:
            if topology is not None and (self._topology is None or topology > self._topology):
                if self._topology is not None:
                    self._owners.clear()
                self._topology = topology

    def lost(self, connection: Connection) -> None:
        """A connection has ended: its node may have, too."""
        connection.close()
        self._avoid(connection.address)
        with self._lock:
            self._owners.clear()
            self._topology = None

    def _owners_of(self, cache: int) -> Dict[int, bytes]:
        with self._lock:
            known = self._owners.get(cache)
        if known is not None:
            return known
        found = self._asked_owners(cache)
        with self._lock:
            self._owners[cache] = found
        self._ask_nodes()
        return found

    def _asked_owners(self, cache: int) -> Dict[int, bytes]:
        answer = self.ask(wire.OP_CACHE_PARTITIONS, struct.pack("<ii", 1, cache))
        topology = (answer.int64(), answer.int32())
        found: Dict[int, bytes] = {}
        for _ in range(answer.int32()):
            applies = bool(answer.int8())
            caches = set()
            for _ in range(answer.int32()):
                caches.add(answer.int32())
                if applies:
                    for _ in range(answer.int32()):
                        answer.raw(8)  # which field of a key decides, by the key's type
            for _ in range(answer.int32() if applies else 0):
                answer.int8()  # the type code of the id
                node = answer.raw(16)
                for one in answer.int32s():
                    if cache in caches:
                        found[one] = node
        self.note_topology(topology)
        return found

    def _probed(self, cache: int) -> int:
        """Where the cluster does not say where partitions lie (all nodes have all of them, or a program decides), their
        number is found by asking for some: of those that there are not the server says so."""
        first_absent = 1
        while self._has(cache, first_absent) and first_absent < 1 << 16:
            first_absent *= 2
        last = first_absent // 2 if first_absent > 1 else 0
        while first_absent - last > 1:
            middle = (last + first_absent) // 2
            last, first_absent = (middle, first_absent) if self._has(cache, middle) else (last, middle)
        return first_absent

    def _has(self, cache: int, partition: int) -> bool:
        try:
            answer = self.ask(wire.OP_QUERY_SCAN, scan_request(cache, partition, 1))
        except ServerRefusal as error:
            if "artition" in str(error):
                return False
            raise
        cursor = answer.int64()
        if answer.data[len(answer.data) - 1]:
            self.ask(wire.OP_RESOURCE_CLOSE, struct.pack("<q", cursor))
        return True

    def _ask_nodes(self) -> None:
        if self._shared is None or not self._shared.features >> wire.FEATURE_NODE_ENDPOINTS & 1:
            return
        answer = self.ask(wire.OP_NODE_ENDPOINTS, struct.pack("<qq", -1, -1))
        answer.int64()
        found: Dict[bytes, List[Address]] = {}
        for _ in range(answer.int32()):
            node, port = answer.raw(16), answer.int32()
            names = [answer.text() for _ in range(answer.int32())]
            found[node] = [(name, port) for name in names if name]
        with self._lock:
            self._nodes = found

    def _of_node(self, node: Optional[bytes]) -> Sequence[Address]:
        with self._lock:
            now = time.monotonic()
            # What a node says of itself may be known only within its own network.
            reached = self._reached.get(node or b"")
            said = [*([reached] if reached else []), *self._nodes.get(node or b"", ())]
            return [one for one in dict.fromkeys(said) if self._avoided.get(one, 0.0) < now]

    def _made(self, address: Address) -> Connection:
        found = Connection(address, self._access, has_worked=bool(self._reached))
        with self._lock:
            self._reached.setdefault(found.node, address)
        return found

    def _avoid(self, address: Address) -> None:
        with self._lock:
            self._avoided[address] = time.monotonic() + AVOIDED

    def _known(self) -> List[Address]:
        """All addresses: those that were given first, and last those that did not answer just now."""
        with self._lock:
            others = [one for some in self._nodes.values() for one in some]
            every = list(dict.fromkeys([*self._access.addresses, *others]))
            now = time.monotonic()
            return sorted(every, key=lambda one: self._avoided.get(one, 0.0) > now)

    def _any(self, until: float) -> Connection:
        pause, is_first = FIRST_PAUSE, not self._nodes
        while True:
            said = ""
            for address in self._known():
                try:
                    return self._made(address)
                except ConnectionLost as error:
                    said = str(error)
                    self._avoid(address)
            # A wrong address is told of at once; a cluster that was there may come back.
            if is_first or time.monotonic() + pause > until:
                message = "No Ignite server can be reached: %s"
                if not is_first and self._patience >= 1:
                    message = "No Ignite server has answered for %d seconds: %%s" % self._patience
                advice = ". Check host and port (IGNITE_DATASET_HOST, IGNITE_DATASET_PORT), and that the server runs."
                raise IgniteUnavailable(message % said + advice)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def scan_request(cache: int, partition: int, rows: int, is_local: bool = False) -> bytes:
    """Rows of one partition (-1: of all), so many a page, as they are stored."""
    return struct.pack("<ibbiib", cache, 1, wire.NULL, rows, partition, is_local)


def translated(error: ServerRefusal, where: str) -> Exception:
    """What a script is told of a refusal that no other server would take back; the error itself where one may."""
    text = str(error)
    if error.status == wire.STATUS_NO_SUCH_CACHE:
        return IgniteCacheError("There is no %s." % where)
    if error.status == wire.STATUS_NOT_ALLOWED:
        return IgniteSignInError("The user may not read %s: %s" % (where, text))
    if "Invalid partition" in text:
        return IgnitePartitionError("%s has no such partition: %s. Check IGNITE_DATASET_PART." % (where, text))
    return error
