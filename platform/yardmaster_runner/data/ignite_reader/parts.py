"""Which partitions of a cache a task reads. Pure, but for what the environment says of the task.

`IGNITE_DATASET_PART` lists them (`3`, `0,1,5-9`). Without it the partitions are divided among the tasks that train, by
their numbers alone: every task comes to the same division, also while partitions move between nodes. Only where tasks
can agree (`agreed`) does it matter where the partitions lie.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import Callable, Container, List, Mapping, Optional, Sequence, Tuple, Union

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


@dataclass(frozen=True)
class Place:
    """Where this task stands among those that train."""

    part: Optional[Tuple[int, int]]
    """Which part of how many it has; None for one that does not train, and outside a job."""
    machines: Tuple[str, ...] = ()
    """The addresses of the machines of all parts; empty where they have no way to agree, or run on one machine."""
    socket: str = ""
    """Of the task's runner."""


def own_place(environment: Mapping[str, str]) -> Place:
    """What the job says of this task; else what TF_CONFIG does."""
    where = environment.get(VARIABLE)
    if where and os.path.exists(where):
        with open(where, encoding="utf-8") as file:
            said = json.load(file)
        part = tuple(said["part"]) if said["part"] else None
        return Place(part, tuple(said.get("machines") or ()), said.get("socket") or "")
    try:
        config = json.loads(environment.get("TF_CONFIG") or "{}")
        counts = {role: len(tasks) for role, tasks in config.get("cluster", {}).items()}
        role, index = str(config["task"]["type"]), int(config["task"]["index"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return Place(None)
    chiefs = sum(counts.get(one, 0) for one in CHIEFS)
    if role not in (*CHIEFS, "worker"):
        return Place(None)
    return Place((index + (chiefs if role == "worker" else 0), chiefs + counts.get("worker", 0)))


def chosen(
    count: int,
    named: Union[str, Sequence[int], None],
    share: Share,
    environment: Mapping[str, str],
    held: Optional[Sequence[int]] = None,
    agreed: Callable[[Place], Optional[Sequence[int]]] = lambda _: None,
) -> List[int]:
    """The partitions of this task, of a cache with `count`. `named`: those that the script names; the environment's
    come before them. `held`: only those that one node holds. `agreed`: which part has each partition, where the tasks
    of the job have agreed on that. Raises `IgnitePartitionError`."""
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
    place = own_place(environment)
    index, parts = _part_of(share, place.part)
    beside = agreed(place) if share is None and parts > 1 else None
    mine = list(range(index, count, parts))
    if beside is not None:
        mine = [partition for partition, part in enumerate(beside) if part == index]
    if not mine:
        message = (
            "The cache has %d partitions for %d tasks, so task %d has none. Use fewer tasks, or a cache with more."
        )
        raise IgnitePartitionError(message % (count, parts, index))
    return mine


def _part_of(share: Share, part: Optional[Tuple[int, int]]) -> Tuple[int, int]:
    if isinstance(share, tuple) or share not in (None, "all", "shards"):
        try:
            return Input("", "", "", part=part).part_for(share)
        except DataError as error:
            raise IgnitePartitionError(str(error)) from error
    return part if part is not None and share != "all" else (0, 1)


def beside_data(holders: Sequence[Container[str]], machines: Sequence[str]) -> Optional[List[int]]:
    """Which part reads each partition, so that as many as can be are read on the machine that holds them. `holders`:
    for each partition the addresses of its node; `machines`: for each part the address of its machine. Partitions of a
    machine go to its parts in turn, those of other machines to the parts with the fewest. None where no node is on a
    machine of the job, or where a part would have nothing to read. Pure."""
    given: List[Optional[int]] = []
    counts = [0] * len(machines)
    for addresses in holders:
        those = [part for part, machine in enumerate(machines) if machine in addresses]
        chosen_part = min(those, key=lambda part: (counts[part], part)) if those else None
        given.append(chosen_part)
        if chosen_part is not None:
            counts[chosen_part] += 1
    if not any(counts):
        return None
    made: List[int] = []
    for one in given:
        if one is None:
            one = min(range(len(machines)), key=lambda part: (counts[part], part))
            counts[one] += 1
        made.append(one)
    return made if all(counts) else None
