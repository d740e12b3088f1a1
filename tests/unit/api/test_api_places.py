"""How many of a kind are under way at once."""

from __future__ import annotations

import asyncio

import pytest

from apps.api.places import Place, Places
from apps.errors import TooMany

ONE, OTHER = Place("one", 1, 0.0), Place("other", 1, 0.0)


async def test_places_are_given_back_and_forgotten():
    places = Places()
    async with places.hold([ONE]):
        with pytest.raises(TooMany):
            async with places.hold([OTHER, ONE]):
                pass
        async with places.hold([OTHER]):
            pass
    async with places.hold([ONE]):
        pass
    assert places._kinds == {}


async def test_who_waits_gets_the_place_that_becomes_free():
    places = Places()
    freed, entered = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with places.hold([Place("one", 1, 5.0)]):
            entered.set()
            await freed.wait()

    task = asyncio.create_task(first())
    await entered.wait()
    with pytest.raises(TooMany):
        async with places.hold([Place("one", 1, 0.01)]):
            pass
    freed.set()
    async with places.hold([Place("one", 1, 5.0)]):
        pass
    await task
