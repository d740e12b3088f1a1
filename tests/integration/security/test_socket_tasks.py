"""Tasks that end together do so also where one of them does not notice that it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from apps.accounts import socket_tasks
from apps.accounts.socket_tasks import end_tasks, first_of
from apps.jobs import shell_sockets
from apps.jobs.shell_sockets import Over


async def lose_a_cancellation() -> None:
    """As `asyncio.wait_for` of Python 3.11 does when what it waits for comes at the same moment."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def continue_once() -> None:
    await lose_a_cancellation()
    await asyncio.Event().wait()


async def fail() -> None:
    raise ValueError("it failed")


async def test_a_task_that_continues_is_cancelled_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(socket_tasks, "CANCEL_AGAIN", 0.01)
    tasks = [asyncio.create_task(continue_once()), asyncio.create_task(fail())]
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await end_tasks(*tasks)
    assert [task.cancelled() for task in tasks] == [True, False]


async def test_the_first_one_speaks_for_all(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(socket_tasks, "CANCEL_AGAIN", 0.01)
    with pytest.raises(ValueError, match="it failed"):
        async with asyncio.timeout(20):
            await first_of(continue_once(), fail())
    await end_tasks()


async def test_who_waits_for_such_a_task_and_is_cancelled_leaves_none_behind(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(socket_tasks, "CANCEL_AGAIN", 60.0)
    inner = asyncio.create_task(continue_once())
    outer = asyncio.create_task(end_tasks(inner))
    await asyncio.sleep(0.01)
    assert not inner.done(), "the first cancellation is lost"
    outer.cancel()
    async with asyncio.timeout(socket_tasks.CANCEL_AGAIN / 2):
        await asyncio.wait([inner, outer])
    assert (inner.cancelled(), outer.cancelled()) == (True, True)


async def test_the_end_of_a_shell_takes_no_more_from_its_socket(monkeypatch: pytest.MonkeyPatch):
    """It does not wait until the cancellation is repeated."""
    monkeypatch.setattr(socket_tasks, "CANCEL_AGAIN", 60.0)
    taken: list[str] = []

    class Ending:
        async def from_socket(self) -> None:
            taken.append("message")
            await lose_a_cancellation()

        async def to_socket(self) -> None:
            await asyncio.sleep(0.01)
            raise Over("The command has ended.", exit_code=7)

    with pytest.raises(Over, match="has ended"):
        async with asyncio.timeout(socket_tasks.CANCEL_AGAIN / 2):
            await shell_sockets._until_over(Ending(), lambda: asyncio.sleep(0))  # type: ignore[arg-type]
    assert taken == ["message"]
