"""What the answers of admission say, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from yardmaster.job.spec_spark import of_spark_cluster
from yardmaster.quantity import format_amount, some_of
from yardmaster.queueing.ledger import Code
from yardmaster.queueing.placement import Node
from yardmaster.queueing.pools import CAPACITY, QUOTA, Shortage

_NAMES = {"cpu": "CPU", "memory": "memory", "gpus": "GPUs"}


def waiting_message(code: Code, numbers: Sequence[Shortage], ahead: int) -> str:
    """Of a job that waits with so many others ahead, for what it lacks (`numbers`)."""
    others = f"{ahead} job{'' if ahead == 1 else 's'}"
    if code is Code.WAITING_FOR_TURN:
        return f"Capacity is free, but reserved for {others} ahead in the queue."
    lacking = " ".join(
        f"Not enough {text}: {listed(found)}."
        for text, found in (
            ("namespace quota", [one for one in numbers if one.pool == QUOTA]),
            ("free capacity on the engine", [one for one in numbers if one.pool == CAPACITY and _is_here(one)]),
            ("cores for all jobs together", [one for one in numbers if one.pool == CAPACITY and not _is_here(one)]),
        )
        if found
    ) or " ".join(map(_scattered, numbers))
    return (
        f"{lacking} {others} ahead {'is' if ahead == 1 else 'are'} waiting for the same resources."
        if ahead
        else lacking
    )


def _is_here(one: Shortage) -> bool:
    """Whether it is the engine that lacks it, and no Spark cluster."""
    return not of_spark_cluster(one.resource)


def _scattered(one: Shortage) -> str:
    return (
        f"Enough capacity in total, but only {one.unused:.0f} of its {one.needs:.0f} tasks fit on single nodes, and "
        "all tasks of a job start together."
    )


def closed_nodes(nodes: Iterable[Node]) -> str:
    """`Machines that take no tasks now: m2 (away), m3 (drained).`; empty where all take some."""
    closed = [f"{one.name} ({one.closed})" for one in nodes if one.closed]
    return f"Machines that take no tasks now: {some_of(closed)}." if closed else ""


def listed(numbers: Sequence[Shortage]) -> str:
    """The shortages with what is requested and what there is, separated by commas."""
    return ", ".join(map(_describe, numbers))


def _describe(one: Shortage) -> str:
    """`CPU (4 requested, 2 of 8 available)`."""
    needs, unused, limit = (
        format_amount(one.resource, amount) for amount in (one.needs, max(one.unused, 0), one.limit)
    )
    cluster = of_spark_cluster(one.resource)
    name = f"Spark cluster {cluster}" if cluster else _NAMES.get(one.resource, one.resource.replace("_", " "))
    if one.unused == one.limit:
        return f"{name} ({needs} requested, maximum {limit})"
    return f"{name} ({needs} requested, {unused} of {limit} available)"
