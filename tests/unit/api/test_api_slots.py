"""How many of a kind are under way at once."""

from __future__ import annotations

import asyncio

import pytest

from apps.api.slots import Slot, Slots
from apps.errors import TooMany

ONE, OTHER = Slot("one", 1, 0.0), Slot("other", 1, 0.0)


async def test_places_are_given_back_and_forgotten():
    slots = Slots()
    async with slots.hold([ONE]):
        with pytest.raises(TooMany):
            async with slots.hold([OTHER, ONE]):
                pass
        async with slots.hold([OTHER]):
            pass
    async with slots.hold([ONE]):
        pass
    assert slots._kinds == {}


async def test_who_waits_gets_the_place_that_becomes_free():
    slots = Slots()
    freed, entered = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with slots.hold([Slot("one", 1, 5.0)]):
            entered.set()
            await freed.wait()

    task = asyncio.create_task(first())
    await entered.wait()
    with pytest.raises(TooMany):
        async with slots.hold([Slot("one", 1, 0.01)]):
            pass
    freed.set()
    async with slots.hold([Slot("one", 1, 5.0)]):
        pass
    await task
