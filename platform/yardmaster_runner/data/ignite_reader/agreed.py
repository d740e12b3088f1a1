"""Partitions beside their data: which task of a job reads which partition follows from where the partitions lie.

That changes, so tasks that start one after the other would see different things, and rows would be read twice or not
at all. So it is decided once for each attempt: the first task that asks proposes a division, the portal keeps it, and
every task gets that one, also when it starts again. Tasks ask over the socket of their runner.
"""

from __future__ import annotations

import hashlib
import time
from typing import List, Optional

from yardmaster_runner.data.ignite_reader.cluster import Cluster
from yardmaster_runner.data.ignite_reader.errors import IgnitePartitionError, IgniteUnavailable
from yardmaster_runner.data.ignite_reader.parts import Place, beside_data
from yardmaster_runner.data.inputs import DataError, DataUnavailable, Input
from yardmaster_runner.data.passes import CALLS, Connection

PATIENCE = 600.0
"""Seconds for which the portal may be away."""
PAUSE = 1.0
LONGEST = 256 << 10
"""Characters of a division."""


def agreed_parts(cluster: Cluster, cache: int, count: int, place: Place) -> Optional[List[int]]:
    """Which part reads each partition of a cache; None: they are divided by their numbers. The same in every task.
    Raises `IgniteUnavailable`, `IgnitePartitionError`."""
    if not place.machines or not place.socket:
        return None
    proposed = beside_data([cluster.addresses(cache, one) for one in range(count)], place.machines)
    text = "" if proposed is None else ",".join(map(str, proposed))
    name = "ignite %d %d %s" % (cache, count, " ".join(place.machines))
    said = _agreed(place.socket, hashlib.sha256(name.encode()).hexdigest(), text if len(text) <= LONGEST else "")
    if not said:
        return None
    found = [int(one) if one.isdigit() else -1 for one in said.split(",")]
    if len(found) != count or not all(0 <= one < len(place.machines) for one in found):
        raise IgnitePartitionError("The division that the tasks of this job agreed on is damaged: %s" % said[:99])
    return found


def _agreed(socket: str, name: str, value: str) -> str:
    connection = Connection(Input("", "", "", socket=socket))
    until = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < until:
            CALLS.check()
            answer = connection.ask(op="agree", name=name, value=value)
            if "value" in answer:
                return str(answer["value"])
            time.sleep(PAUSE)
        words = "The portal does not answer, so the tasks cannot agree on their partitions. Start again when it does."
        raise IgniteUnavailable(words)
    except DataUnavailable as error:
        raise IgniteUnavailable(str(error)) from error
    except DataError as error:
        raise IgnitePartitionError("The tasks cannot agree on their partitions: %s" % error) from error
    finally:
        connection.close()
