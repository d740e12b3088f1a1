"""Of the bodies that are held in memory one caller has a share, and small ones a part of their own."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from portal import body_limit
from portal.body_limit import BodyLimit

MIB = 1 << 20
PIECE = b"x" * 65_536


@pytest.fixture(autouse=True)
def _parts_of_8_mib(settings, monkeypatch):
    settings.YARDMASTER_BODIES_TOTAL = 64 * MIB
    monkeypatch.setattr(body_limit, "_size_of_part", lambda *_: 8 * MIB)


async def read_whole(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


def scope(path: str, size: int, address: str) -> dict:
    headers = [(b"content-length", b"%d" % size)]
    return {"type": "http", "path": path, "headers": headers, "query_string": b"", "client": (address, 1)}


async def answer(path: str, size: int, address: str = "10.0.0.9") -> tuple[int, str]:
    sent: list[dict] = []

    async def receive():
        return {"type": "http.request", "body": b"x" * size, "more_body": False}

    async def send(message):
        sent.append(message)

    await BodyLimit(read_whole)(scope(path, size, address), receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"]).get("code", "")


@asynccontextmanager
async def stopped(number: int, address: str, path: str = "/storage/parts/abc/1", size: int = 8 * MIB, pieces: int = 42):
    """So many bodies that stop after some pieces."""

    async def one() -> None:
        left = pieces

        async def receive():
            nonlocal left
            left -= 1
            if left < 0:
                await asyncio.sleep(3600)
            return {"type": "http.request", "body": PIECE[: size // 2], "more_body": True}

        await BodyLimit(read_whole)(scope(path, size, address), receive, send)

    async def send(message):
        pass

    tasks = [asyncio.create_task(one()) for _ in range(number)]
    await asyncio.sleep(0.1)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_parts_that_stop_keep_no_form_and_no_other_caller_out():
    async with stopped(60, "10.0.0.1"):
        assert await answer("/sign-in/", 200) == (200, "")
        assert await answer("/storage/parts/abc/2", 8 * MIB) == (200, "")
        assert await answer("/storage/parts/abc/2", 8 * MIB, "10.0.0.1") == (503, "unavailable")


async def test_forms_have_room_where_parts_of_many_fill_theirs():
    async with stopped(20, "10.0.0.1"), stopped(20, "10.0.0.2"), stopped(20, "10.0.0.3"):
        assert await answer("/storage/parts/abc/2", 8 * MIB) == (503, "unavailable")
        assert await answer("/sign-in/", 200) == (200, "")


async def test_small_bodies_of_one_address_leave_room_for_those_of_others():
    async with stopped(200, "10.0.0.1", "/sign-in/", 60_000, 1):
        assert await answer("/sign-in/", 60_000, "10.0.0.1") == (503, "unavailable")
        assert await answer("/sign-in/", 60_000) == (200, "")


async def test_what_is_held_is_given_back_and_forgotten():
    async with stopped(60, "10.0.0.1"), stopped(9, "10.0.0.2", "/sign-in/", 1_000, 1):
        assert body_limit.LARGE.total > 16 * MIB
        assert body_limit.SMALL.total == 9 * 500
    for held in (body_limit.SMALL, body_limit.LARGE):
        assert (held.total, held.by_caller) == (0, {})
