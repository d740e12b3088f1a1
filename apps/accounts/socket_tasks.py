"""Tasks of an event loop that end together, such as those of one socket."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
CANCEL_AGAIN = 2.0
"""Seconds; more than a task needs to leave what it has joined."""


async def first_of(*ways: Coroutine[Any, Any, T]) -> T:
    """Run all until one ends, and say what it said."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task.done()).result()
    finally:
        await end_tasks(*tasks)


async def end_tasks(*tasks: asyncio.Task[Any]) -> None:
    """Cancel them, and return when they have ended; what they raise is dropped. One that continues is cancelled again:
    `asyncio.wait_for` of Python 3.11 takes a cancellation for itself where what it waits for has just come, and the
    client of the message server sends with it."""
    left = set(tasks)
    try:
        while left:
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN)
    finally:
        for task in left:  # cancelled itself: they are not left behind
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
