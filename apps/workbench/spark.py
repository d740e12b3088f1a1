"""The Spark cluster that a Jupyter may have beside it, in its own size: whether it may, and how large it is."""

from __future__ import annotations

from collections.abc import Collection

from apps.errors import Conflict, Invalid
from apps.jobs.engines.configured import can_have_spark, why_no_spark
from apps.workbench.models import WorkbenchSession
from apps.workbench.sizes import Size, sizes
from yardmaster.errors import Problem
from yardmaster.job.spec import Resources
from yardmaster.quantity import format_bytes

BESIDE = 1 << 30
"""Bytes for JupyterLab, a kernel with TensorFlow, and Spark's own processes."""
OF_EACH = 1 << 30
"""Bytes for each executor: its heap, and the Python processes beside it."""
FIELD = "spark_executors"


def most_executors(resources: Resources) -> int:
    """How many a session of this size can have: each has a core of its own, and its part of the memory."""
    return max(0, min(int(resources.cpu), (resources.memory - BESIDE) // OF_EACH))


def executors_of(session: WorkbenchSession, asked: int | None, size: Size, engine: str) -> int:
    """How many a start of this session has: `asked`, or as before where that is None. Raises `Invalid` where they do
    not fit its size, and `Conflict` where the engine has no Spark for it."""
    count = session.spark_executors if asked is None else asked
    if not count:
        return 0
    if not session.is_personal:
        message = "Only a Jupyter has a Spark cluster beside it."
        raise Invalid([Problem(FIELD, "conflict", message, "Leave spark_executors out.", str(count))])
    if count < 0 or count > most_executors(size.resources):
        raise Invalid([_too_many(count, size)])
    if missing := why_no_spark(engine):
        raise Conflict(missing, "no_spark", remedy="Choose another engine, or start it with 0 Spark executors.")
    return count


def _too_many(count: int, size: Size) -> Problem:
    most = most_executors(size.resources)
    message = (
        f"A session of the size {size.words} can have {most or 'no'} Spark executor{'' if most == 1 else 's'}: each "
        f"needs a whole core and {format_bytes(OF_EACH)}, beside {format_bytes(BESIDE)} for JupyterLab and a kernel."
    )
    larger = [one.name for one in sizes().values() if most_executors(one.resources) >= count]
    fewer = f"Ask for at most {most}" if most else "Start it with 0 executors"
    remedy = f"{fewer}, or choose the size {' or '.join(larger)}." if larger else f"{fewer}."
    return Problem(FIELD, "too_many", message, remedy, str(count))


def choices(engines: Collection[str]) -> tuple[list[tuple[str, str]], str]:
    """What a form offers for these engines; nothing where none of them has a Spark, and then what to install for it."""
    lacks = {one: why_no_spark(one) for one in engines}
    most = max((most_executors(one.resources) for one in sizes().values()), default=0)
    if "" not in lacks.values():
        return [], next((words for one, words in lacks.items() if can_have_spark(one)), "")
    named = [(str(one), "1 executor" if one == 1 else f"{one} executors") for one in range(1, most + 1)]
    return ([("0", "None"), *named] if named else []), ""
