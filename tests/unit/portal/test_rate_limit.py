"""Which allowances a request takes, and how many are under way at once."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from apps.api.problems import TooMany
from portal.callers import Caller
from portal.rate_limit import Places, demand_of, headers_of
from yardmaster.allowances import Allowance, Outcome, Taking

ADA, TASK, STRANGER = Caller("user", "ada"), Caller("task", "job"), Caller("stranger", "10.0.0.1")
ID = uuid.UUID(int=7)


def names(caller: Caller, method: str, path: str, kind: str = "http") -> list[str]:
    return [one.allowance.name for one in demand_of(kind, method, path, caller, "10.0.0.1").takings]


@pytest.mark.parametrize(
    ("caller", "method", "path", "expected"),
    [
        (ADA, "GET", "/api/v1/jobs/", ["user"]),
        (ADA, "POST", "/api/v1/jobs/", ["user", "launches"]),
        (ADA, "POST", f"/api/v1/jobs/{ID}/retry/", ["user", "launches"]),
        (ADA, "POST", "/api/v1/uploads/", ["user", "uploads"]),
        (ADA, "GET", f"/api/v1/jobs/{ID}/logs/search/", ["user", "expensive"]),
        (ADA, "GET", f"/api/v1/jobs/{ID}/logs/lines/", ["user"]),
        (ADA, "GET", f"/code/{ID}/", ["user", "expensive"]),
        (ADA, "GET", f"/code/{ID}/compare/", ["user", "expensive"]),
        (ADA, "GET", f"/datasets/{ID}/changes/", ["user", "expensive"]),
        (ADA, "GET", "/jobs/compare/", ["user", "expensive"]),
        (STRANGER, "GET", "/", ["stranger"]),
        (STRANGER, "PUT", "/storage/parts/x/1", ["objects"]),
        (ADA, "GET", "/storage/objects/x", ["objects"]),
        (TASK, "POST", "/api/v1/task/log/", ["task"]),
    ],
)
def test_what_a_request_takes(caller, method, path, expected):
    assert names(caller, method, path) == expected


def test_tasks_are_counted_per_job_and_here():
    found = demand_of("http", "POST", "/api/v1/task/log/", TASK, "10.0.0.1")
    assert (found.is_counted_here, found.places, found.takings[0].who) == (True, [], "task job")


def test_sockets_have_places_per_user_and_per_address():
    found = demand_of("websocket", "GET", "/ws/jobs/", ADA, "10.0.0.1")
    assert [name for name, _, _ in found.places] == ["sockets user ada", "sockets at 10.0.0.1"]


def test_the_allowance_that_is_nearest_to_its_end_is_told():
    wide, tight = Taking(Allowance("wide", 100, 60), "ada"), Taking(Allowance("tight", 10, 60), "ada")
    told = headers_of([wide, tight], Outcome(None, (10, 8)))
    assert (told["RateLimit-Limit"], told["RateLimit-Remaining"]) == ("10", "1")
    assert told["RateLimit-Policy"] == '"tight";q=10;w=60'
    over = headers_of([wide, tight], Outcome(wide, (100, 9)))
    assert (over["RateLimit-Limit"], over["RateLimit-Remaining"]) == ("100", "0")


async def test_places_are_given_back_and_forgotten():
    places = Places()
    async with places.hold("one", 1, 0.0):
        with pytest.raises(TooMany):
            async with places.hold("one", 1, 0.0):
                pass
        async with places.hold("other", 1, 0.0):
            pass
    async with places.hold("one", 1, 0.0):
        pass
    assert places._kinds == {}


async def test_who_waits_gets_the_place_that_becomes_free():
    places = Places()
    freed, entered = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with places.hold("one", 1, 5.0):
            entered.set()
            await freed.wait()

    task = asyncio.create_task(first())
    await entered.wait()
    with pytest.raises(TooMany):
        async with places.hold("one", 1, 0.01):
            pass
    freed.set()
    async with places.hold("one", 1, 5.0):
        pass
    await task
