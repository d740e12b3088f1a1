"""The SDK for asyncio: made from the synchronous one, many waits at once, and what cancelling leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.portal import ROOT
from tests.real.scene import until
from tests.unit.client.flaky_server import Asked, FlakyServer
from yardmaster_client import Job, NotReachable, PortalError, Yardmaster, aio
from yardmaster_client.aio import AsyncYardmaster
from yardmaster_client.aio.threads import OwnThread
from yardmaster_client.waiting import Unfinished

IDS = [f"{number:08}-0000-7000-8000-000000000000" for number in range(1, 41)]


@pytest.fixture
async def portal(server: FlakyServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("yardmaster_client.changes.LOOK_EVERY", 0.01)
    monkeypatch.setattr("yardmaster_client.transport._pause", lambda answer, attempt: 0.001)
    async with AsyncYardmaster(server.url, "x") as found:
        yield found


def jobs_that_end_together(server: FlakyServer, ids: list[str], phase: str = "SUCCEEDED") -> set[str]:
    """Each job runs until every one was asked for: who waits for one after the other waits for ever."""
    asked: set[str] = set()

    def answer(request: Asked) -> tuple[int, Any]:
        job_id = request.path.strip("/").split("/")[-1].partition("?")[0]
        if request.path.startswith("/ws/"):
            return 404, {}
        asked.add(job_id)
        now = phase if asked >= set(ids) else "RUNNING"
        return 200, {"id": job_id, "name": f"job {int(job_id[:8])}", "phase": now}

    server.by_path = answer
    return asked


def test_what_is_made_is_what_is_there(tmp_path: Path):
    spec = importlib.util.spec_from_file_location("async_sdk", ROOT / "deploy" / "setup" / "async_sdk.py")
    assert spec
    assert spec.loader
    maker = importlib.util.module_from_spec(spec)
    sys.modules["async_sdk"] = maker
    try:
        spec.loader.exec_module(maker)
        maker.main(tmp_path)
    finally:
        del sys.modules["async_sdk"]
    there = Path(aio.__file__).parent
    assert {one.name for one in tmp_path.iterdir()} == {one.name for one in there.glob("made_*.py")}
    for one in tmp_path.iterdir():
        assert one.read_text() == (there / one.name).read_text(), "run deploy/setup/async_sdk.py"


@pytest.mark.parametrize("part", ["jobs", "datasets", "code", "models", "services", "sessions", ""])
async def test_every_method_is_there_with_the_same_arguments(portal: AsyncYardmaster, part: str):
    made, sync = (getattr(portal, part), getattr(portal._sync, part)) if part else (portal, portal._sync)
    left_out = {"shell"} if part == "jobs" else {"sign_in", "sign_in_by_browser"}
    for name, method in inspect.getmembers(type(sync), inspect.isfunction):
        if name.startswith("_") or name in left_out:
            continue
        theirs, ours = inspect.signature(method), inspect.signature(getattr(type(made), name))
        if name != "follow":
            assert list(theirs.parameters) == list(ours.parameters), name


async def test_twenty_jobs_are_waited_for_together(server: FlakyServer, portal: AsyncYardmaster):
    ids = IDS[:20]
    jobs_that_end_together(server, ids)
    found = await asyncio.gather(*[portal.jobs.wait(one) for one in ids])
    assert [(job.id, job.phase) for job in found] == [(one, "SUCCEEDED") for one in ids]


async def test_forty_waits_leave_short_calls_their_turn(server: FlakyServer, portal: AsyncYardmaster):
    asked = jobs_that_end_together(server, [*IDS, "last"])
    waits = asyncio.ensure_future(portal.jobs.wait_all(IDS))
    while len(asked) < len(IDS):
        await asyncio.sleep(0.01)
    assert not waits.done()
    assert (await portal._run(lambda: portal._sync.transport.get("jobs/" + IDS[0] + "/")))["phase"] == "RUNNING"
    asked.add("last")
    assert {job.phase for job in await waits} == {"SUCCEEDED"}


async def test_phases_are_told_and_callbacks_may_stop_it(server: FlakyServer, portal: AsyncYardmaster):
    jobs_that_end_together(server, IDS)
    seen: list[str] = []
    found = await portal.jobs.wait(IDS[0], on_phase=lambda job: seen.append(job.phase), until=lambda job: True)
    assert (found.phase, seen) == ("RUNNING", ["RUNNING"])


async def test_who_is_late_is_said(server: FlakyServer, portal: AsyncYardmaster):
    jobs_that_end_together(server, IDS)
    with pytest.raises(Unfinished, match="job 1"):
        await portal.jobs.wait_all(IDS[:2], timeout=0.0)
    with pytest.raises(TimeoutError):
        await portal.jobs.wait(IDS[0], timeout=0.0)


async def test_cancelling_ends_the_thread_that_waits(server: FlakyServer, portal: AsyncYardmaster, monkeypatch):
    monkeypatch.setattr("yardmaster_client.waiting.LISTEN_FOR", 0.05)
    jobs_that_end_together(server, IDS)
    before = threading.active_count()
    task = asyncio.ensure_future(portal.jobs.wait(IDS[0]))
    while not server.asked:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(until, lambda: "yardmaster" not in {one.name for one in threading.enumerate()}, 20)
    assert threading.active_count() <= before + 3, "the pool's and the server's"


async def test_lists_are_iterated_page_by_page(server: FlakyServer, portal: AsyncYardmaster):
    def answer(asked: Asked) -> tuple[int, Any]:
        last = "cursor=2" in asked.path
        rows = [{"id": "b" if last else "a", "name": "n"}]
        return 200, {"results": rows, "next": None if last else f"{server.url}/api/v1/datasets/?cursor=2"}

    server.by_path = answer
    assert [one.id async for one in portal.datasets.list(search="n")] == ["a", "b"]
    async with contextlib.aclosing(portal.datasets.list()) as rows:
        async for one in rows:
            assert one.id == "a"
            break
    assert len(server.asked) == 3, "what was left early asks for no more"


async def test_errors_are_the_same(server: FlakyServer, portal: AsyncYardmaster):
    server.answers = [(409, {"code": "never_fits", "detail": "Too large.", "largest_fit": {"worker": 1}})]
    with pytest.raises(PortalError) as caught:
        await portal.jobs.launch({"name": "n"})
    assert (caught.value.code, caught.value.facts) == ("never_fits", {"largest_fit": {"worker": 1}})
    server.answers = [None]
    with pytest.raises(NotReachable):
        [one async for one in portal.models.list()]


async def test_it_is_over_a_synchronous_one_and_closes_it(server: FlakyServer):
    sync = Yardmaster(server.url, "x")
    server.answers = [(200, {"username": "ada"})]
    async with AsyncYardmaster.over(sync) as portal:
        assert (await portal.me())["username"] == "ada"
    assert sync.transport._client.is_closed


async def test_calls_do_not_hold_the_loop_up(server: FlakyServer, portal: AsyncYardmaster):
    release = threading.Event()

    def slow(asked: Asked) -> tuple[int, Any]:
        release.wait(60)
        return 200, {"id": "1", "name": "n", "phase": "RUNNING"}

    server.by_path = slow
    call = asyncio.ensure_future(portal.jobs.get("1"))
    turns = 0
    while turns < 5:
        await asyncio.sleep(0.001)
        turns += 1
    assert not call.done()
    release.set()
    assert isinstance(await call, Job)


async def test_an_iterator_is_closed_in_its_thread():
    closed: list[str] = []

    def rows() -> Iterator[int]:
        try:
            yield from range(1_000_000)
        finally:
            closed.append(threading.current_thread().name)

    thread = OwnThread()
    found = await thread.run(rows)
    assert await thread.run(lambda: next(found)) == 0
    thread.end(found.close)
    await asyncio.to_thread(until, lambda: closed == ["yardmaster"], 20)
