"""Questions that come in numbers are asked together, and each is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

import pytest

from portal.batches import Batches


class Database:
    """Answers when it is let go, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[set[str]] = []
        self.answers = asyncio.Event()

    async def __call__(self, questions: Collection[str]) -> Mapping[str, str]:
        self.asked.append(set(questions))
        await self.answers.wait()
        if "bad" in questions:
            raise ValueError("bad")
        return {one: one.upper() for one in questions}


def test_the_first_is_asked_at_once_and_what_comes_meanwhile_in_one_query() -> None:
    async def run() -> None:
        database = Database()
        batches = Batches(database, pause=0)
        tasks = [asyncio.create_task(batches.ask(one)) for one in ("a",)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(batches.ask(one)) for one in ("b", "c", "b")]
        await asyncio.sleep(0)
        assert database.asked == [{"a"}]
        database.answers.set()
        assert await asyncio.gather(*tasks) == ["A", "B", "C", "B"]
        assert database.asked == [{"a"}, {"b", "c"}]

    asyncio.run(run())


def test_a_query_has_a_bound_and_the_rest_comes_in_the_next() -> None:
    async def run() -> None:
        database = Database()
        database.answers.set()
        batches = Batches(database, pause=0, most=3)
        assert await asyncio.gather(*(batches.ask(str(one)) for one in range(7))) == [str(one) for one in range(7)]
        assert [len(one) for one in database.asked] == [3, 3, 1]

    asyncio.run(run())


def test_an_error_reaches_those_who_asked_and_no_one_later() -> None:
    async def run() -> None:
        database = Database()
        database.answers.set()
        batches = Batches(database, pause=0)
        with pytest.raises(ValueError, match="bad"):
            await batches.ask("bad")
        assert await batches.ask("good") == "GOOD"

    asyncio.run(run())


def test_one_who_goes_away_takes_no_answer_from_another() -> None:
    async def run() -> None:
        database = Database()
        batches = Batches(database, pause=0)
        first, second = (asyncio.create_task(batches.ask("a")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        database.answers.set()
        assert await second == "A"

    asyncio.run(run())


def test_another_event_loop_finds_it_as_new() -> None:
    database_of = {}

    async def ask_all(questions: Collection[str]) -> Mapping[str, str]:
        database_of["loop"] = asyncio.get_running_loop()
        return dict.fromkeys(questions, "yes")

    batches = Batches(ask_all, pause=60)
    assert asyncio.run(batches.ask("a")) == "yes"
    assert asyncio.run(batches.ask("a")) == "yes", "although the first loop ended while it paused"


def test_a_query_that_hangs_holds_up_no_other() -> None:
    async def run() -> None:
        begun, hangs = asyncio.Event(), asyncio.Event()

        async def ask_all(questions: Collection[str]) -> Mapping[str, str]:
            if "slow" in questions:
                begun.set()
                await hangs.wait()
            return dict.fromkeys(questions, "yes")

        batches = Batches(ask_all, pause=0, patience=0.01)
        slow = asyncio.create_task(batches.ask("slow"))
        await begun.wait()
        assert await batches.ask("quick") == "yes"
        assert not slow.done()
        hangs.set()
        assert await slow == "yes"

    asyncio.run(run())


def test_a_question_without_an_answer_is_an_error() -> None:
    async def run() -> None:
        async def ask_all(questions: Collection[str]) -> Mapping[str, str]:
            return {}

        with pytest.raises(KeyError):
            await Batches(ask_all, pause=0).ask("a")

    asyncio.run(run())
