"""Which partitions of a cache a task reads. Pure, but for what the environment says of the task.

`IGNITE_DATASET_PART` lists them (`3`, `0,1,5-9`). Without it the partitions are divided among the tasks that train, by
their numbers alone: every task comes to the same division, also while partitions move between nodes.
"""

from __future__ import annotations

import json
import os
import re
from typing import Dict, List, Mapping, Optional, Sequence, Tuple, Union

from yardmaster_runner.data.ignite_reader.errors import IgnitePartitionError
from yardmaster_runner.data.inputs import VARIABLE, DataError, Input, Share

PART = "IGNITE_DATASET_PART"
RANGE = re.compile(r"(\d+)(?:-(\d+))?\Z")
CHIEFS = ("chief", "master")


def listed(text: str, name: str = PART) -> List[int]:
    """The partitions in a list such as `0,1,5-9`; `-1`, as of old, and nothing mean that none are named. Raises
    `IgnitePartitionError`."""
    found: List[int] = []
    for one in (part.strip() for part in text.split(",")):
        if one in ("", "-1"):
            continue
        sign = RANGE.match(one)
        first = int(sign.group(1)) if sign else 0
        last = int(sign.group(2) or first) if sign else -1
        if last < first or last > 1 << 20:
            raise IgnitePartitionError("%s is %r: expected numbers and ranges such as 0,1,5-9" % (name, text))
        found.extend(range(first, last + 1))
    return list(dict.fromkeys(found))


def own_part(environment: Mapping[str, str]) -> Optional[Tuple[int, int]]:
    """Which part of how many this task has; None for one that does not train, and outside a job."""
    where = environment.get(VARIABLE)
    if where and os.path.exists(where):
        with open(where, encoding="utf-8") as file:
            part = json.load(file)["part"]
        return tuple(part) if part else None
    try:
        config = json.loads(environment.get("TF_CONFIG") or "{}")
        counts = {role: len(tasks) for role, tasks in config.get("cluster", {}).items()}
        role, index = str(config["task"]["type"]), int(config["task"]["index"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    chiefs = sum(counts.get(one, 0) for one in CHIEFS)
    if role not in (*CHIEFS, "worker"):
        return None
    return (index + (chiefs if role == "worker" else 0), chiefs + counts.get("worker", 0))


def chosen(
    count: int,
    named: Union[str, Sequence[int], None],
    share: Share,
    environment: Mapping[str, str],
    held: Optional[Sequence[int]] = None,
) -> List[int]:
    """The partitions of this task, of a cache with `count`. `named`: those that the script names; the environment's
    come before them. `held`: only those that one node holds. Raises `IgnitePartitionError`."""
    text = environment.get(PART, "")
    found = listed(text) or (listed(named, "partitions") if isinstance(named, str) else list(named or ()))
    beyond = [one for one in found if not 0 <= one < count]
    if beyond:
        message = "%s names the partition %d, and the cache has %d, from 0 on."
        raise IgnitePartitionError(message % (PART if listed(text) else "partitions", beyond[0], count))
    if found:
        return found if held is None else [one for one in found if one in set(held)]
    if held is not None:
        return list(held)
    index, parts = _part_of(share, environment)
    mine = list(range(index, count, parts))
    if not mine:
        message = (
            "The cache has %d partitions for %d tasks, so task %d has none. Use fewer tasks, or a cache with more."
        )
        raise IgnitePartitionError(message % (count, parts, index))
    return mine


def _part_of(share: Share, environment: Mapping[str, str]) -> Tuple[int, int]:
    part = own_part(environment)
    if isinstance(share, tuple) or share not in (None, "all", "shards"):
        try:
            return Input("", "", "", part=part).part_for(share)
        except DataError as error:
            raise IgnitePartitionError(str(error)) from error
    return part if part is not None and share != "all" else (0, 1)


def beside_data(
    nodes: Sequence[str], owners: Mapping[int, str], tasks: Sequence[str], count: int
) -> List[Dict[str, str]]:
    """What each task is told, where tasks run on the machines of the nodes: `tasks` has the host of each, `nodes` those
    of the cluster as HOST:PORT, `owners` the node of each partition. Every partition goes to one task: of its node's
    host where there are some, else to the one with the fewest. Pure: who starts tasks may call it."""
    by_host: Dict[str, List[int]] = {}
    for number, host in enumerate(tasks):
        by_host.setdefault(host, []).append(number)
    given: List[List[int]] = [[] for _ in tasks]
    for partition in range(count):
        host = owners.get(partition, "").rpartition(":")[0]
        those = by_host.get(host) or list(range(len(tasks)))
        given[min(those, key=lambda one: (len(given[one]), one))].append(partition)
    made = []
    for number, host in enumerate(tasks):
        node = next((one for one in nodes if one.rpartition(":")[0] == host), nodes[number % len(nodes)])
        name, _, port = node.rpartition(":")
        parts = ",".join(map(str, given[number]))
        made.append({"IGNITE_DATASET_HOST": name, "IGNITE_DATASET_PORT": port, PART: parts})
    return made
