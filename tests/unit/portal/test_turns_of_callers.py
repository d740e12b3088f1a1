"""Whose request advances next."""

from __future__ import annotations

import asyncio

import pytest

from portal.turns import Turns


async def test_a_callers_requests_have_their_turn_in_the_order_in_which_they_came() -> None:
    turns, order, at_work = Turns(2, 60, share=9), [], []

    async def one(number: int) -> None:
        async with turns.one("ada"):
            order.append(number)
            at_work.append(number)
            assert len(at_work) <= 2
            await asyncio.sleep(0.001)
            at_work.remove(number)

    await asyncio.gather(*(one(number) for number in range(20)))
    assert order == list(range(20))


async def test_callers_take_turns_however_many_requests_one_of_them_sends() -> None:
    turns, order = Turns(1, 60, share=9), []

    async def one(who: str) -> None:
        async with turns.one(who):
            order.append(who)
            await asyncio.sleep(0)

    await asyncio.gather(*(one("greedy") for _ in range(50)), *(one(who) for who in ("ada", "bob", "ada")))
    assert order.index("bob") <= 3
    assert order.index("ada") <= 3
    assert len(order) == 53


async def test_requests_that_take_long_hold_up_no_other_and_free_their_turn_once() -> None:
    turns, end, at_work = Turns(2, 0.01, share=9), asyncio.Event(), []

    async def long() -> None:
        async with turns.one("ada"):
            await end.wait()

    waiting = [asyncio.create_task(long()) for _ in range(5)]
    async with asyncio.timeout(5):
        async with turns.one("bob"):
            end.set()
        await asyncio.gather(*waiting)

    async def counted() -> None:
        async with turns.one("bob"):
            at_work.append(1)
            assert len(at_work) <= 2
            await asyncio.sleep(0)
            at_work.pop()

    await asyncio.gather(*(counted() for _ in range(20)))


async def test_one_caller_has_a_share_of_what_is_at_work() -> None:
    turns, end = Turns(4, 0.001, share=3), asyncio.Event()
    inside: list[str] = []

    async def long(who: str) -> None:
        async with turns.one(who):
            inside.append(who)
            await end.wait()

    greedy = [asyncio.create_task(long("greedy")) for _ in range(10)]
    await asyncio.sleep(0.05)
    assert inside == ["greedy"] * 3
    others = [asyncio.create_task(long("other")) for _ in range(3)]
    await asyncio.sleep(0.05)
    assert inside.count("other") == 3
    end.set()
    await asyncio.gather(*greedy, *others)
    assert len(inside) == 13


async def test_a_request_that_breaks_or_is_given_up_frees_its_turn() -> None:
    turns = Turns(1, 60, share=9)
    with pytest.raises(RuntimeError, match="broken"):
        async with turns.one("ada"):
            raise RuntimeError("broken")
    tasks = []
    for number in range(6):
        tasks.append(asyncio.create_task(_hold(turns, f"user {number % 2}")))
        await asyncio.sleep(0)
    tasks[3].cancel()
    tasks[0].cancel()  # what waits is given the turn while it is given up itself
    tasks[1].cancel()
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(5), turns.one("bob"):
        pass
    assert (turns._free, len(turns._waiting), len(turns._at_work)) == (1, 0, 0)


async def _hold(turns: Turns, who: str) -> None:
    async with turns.one(who):
        await asyncio.sleep(60)
