"""Connections that wait for the next request to their session: how many, and which goes when there are too many."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from apps.workbench.proxy import upstream
from apps.workbench.proxy.contract import Admitted
from apps.workbench.proxy.upstream import MOST_IDLE, IdleConnections
from yardmaster.engines.base import Address


class Connection:
    """What is kept: open until it is ended, by either side."""

    def __init__(self) -> None:
        self.is_ended = False

    def is_open(self) -> bool:
        return not self.is_ended

    def abort(self) -> None:
        self.is_ended = True


def admitted() -> Admitted:
    return Admitted(uuid.uuid4(), uuid.uuid4(), Address("127.0.0.1", 1), "key", {})


def kept(idle: IdleConnections, whose: Admitted) -> Any:
    made: Any = Connection()
    idle.keep(whose, made)
    return made


async def test_of_too_many_in_all_the_one_that_has_waited_longest_is_closed():
    idle, sessions = IdleConnections(most=3), [admitted() for _ in range(4)]
    made = [kept(idle, one) for one in sessions]
    assert [one.is_ended for one in made] == [True, False, False, False]
    assert idle.take(sessions[0]) is None
    assert idle.take(sessions[1]) is made[1]
    idle.keep(sessions[1], made[1])
    kept(idle, sessions[0])
    assert [one.is_ended for one in made[1:]] == [False, True, False], "it was used since"
    idle.close()
    assert all(one.is_ended for one in made)


async def test_a_session_has_a_few_and_the_newest_is_taken_first():
    idle, session = IdleConnections(), admitted()
    made = [kept(idle, session) for _ in range(MOST_IDLE + 1)]
    assert [one.is_ended for one in made] == [False] * MOST_IDLE + [True]
    made[MOST_IDLE - 1].is_ended = True
    assert idle.take(session) is made[MOST_IDLE - 2]
    assert idle.take(admitted()) is None


async def test_none_waits_for_long(monkeypatch):
    monkeypatch.setattr(upstream, "IDLE", 0.05)
    idle, session = IdleConnections(), admitted()
    made = kept(idle, session)
    async with asyncio.timeout(20):
        while not made.is_ended:
            await asyncio.sleep(0.01)
    assert idle.take(session) is None
