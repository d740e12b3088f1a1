"""A request is handed to a thread once, whatever kinds of middleware there are."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.http import HttpRequest, HttpResponse
from django.urls import path

from portal.one_thread import OneThread, Turns

WHERE: list[tuple[str, int]] = []
HANDOVERS: list[str] = []


def note(what: str) -> None:
    WHERE.append((what, threading.get_ident()))
    above = [frame.filename for frame in traceback.extract_stack()]
    HANDOVERS.extend(name for name in above[above.index(__file__) :] if "asgiref" in name)


class Notes:
    """A middleware that says in which thread its methods are called."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        note("in")
        response = self.get_response(request)
        note("out")
        return response

    def process_view(self, request: HttpRequest, view: Any, arguments: Any, names: Any) -> None:
        note("process_view")


def view(request: HttpRequest) -> HttpResponse:
    note("view")
    if "broken" in request.GET:
        raise ValueError
    return HttpResponse(request.body)


urlpatterns = [path("here", view)]
handler500 = "tests.unit.portal.test_one_thread.failed"


def failed(request: HttpRequest) -> HttpResponse:
    return HttpResponse("failed", status=500)


@pytest.fixture
def django(settings: Any) -> OneThread:
    settings.YARDMASTER_WEB_THREADS = 2
    WHERE.clear()
    HANDOVERS.clear()
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = [f"{__name__}.Notes", "django_structlog.middlewares.RequestMiddleware", f"{__name__}.Notes"]
    return OneThread()


async def answer(django: OneThread, query: bytes = b"", body: bytes = b"") -> tuple[int, bytes]:
    scope = {"type": "http", "method": "POST", "path": "/here", "query_string": query, "headers": []}
    client = ApplicationCommunicator(django, scope)
    await client.send_input({"type": "http.request", "body": body})
    start, content = await client.receive_output(5), await client.receive_output(5)
    await client.wait()
    return start["status"], content["body"]


async def test_middleware_and_view_share_a_thread_which_is_not_the_event_loops(django: OneThread) -> None:
    assert await answer(django, body=b"hello") == (200, b"hello")
    assert [what for what, _ in WHERE] == ["in", "in", "process_view", "process_view", "view", "out", "out"]
    (thread,) = {thread for _, thread in WHERE}
    assert thread != threading.get_ident()
    assert HANDOVERS == []


async def test_a_view_that_breaks_is_answered_by_the_error_page(django: OneThread) -> None:
    assert await answer(django, b"broken=1") == (500, b"failed")
    assert WHERE[-1][0] == "out"
    assert HANDOVERS == []


async def test_requests_at_once_have_threads_of_their_own(django: OneThread) -> None:
    answers = await asyncio.gather(*(answer(django, body=b"%d" % number) for number in range(5)))
    assert [body for _, body in answers] == [b"%d" % number for number in range(5)]


async def test_threads_stay_and_with_them_their_connections_which_are_looked_at_before_and_after(
    django: OneThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr("portal.one_thread.close_old_connections", lambda: looked.append(threading.get_ident()))
    for _ in range(20):
        await answer(django)
    threads = {thread for _, thread in WHERE}
    assert len(threads) <= 2  # a second one may begin while the first still puts its work away
    assert len(looked) == 40
    assert looked[::2] == looked[1::2]


async def test_requests_have_their_turn_in_the_order_in_which_they_came() -> None:
    turns, order, at_work = Turns(2, short=60), [], []

    async def one(number: int) -> None:
        async with turns.one():
            order.append(number)
            at_work.append(number)
            assert len(at_work) <= 2
            await asyncio.sleep(0.001)
            at_work.remove(number)

    await asyncio.gather(*(one(number) for number in range(20)))
    assert order == list(range(20))


async def test_requests_that_take_long_hold_up_nobody_and_free_their_turn_once() -> None:
    turns, end = Turns(2, short=0.01), asyncio.Event()

    async def long() -> None:
        async with turns.one():
            await end.wait()

    waiting = [asyncio.create_task(long()) for _ in range(5)]
    async with asyncio.timeout(5):
        async with turns.one():
            end.set()
        await asyncio.gather(*waiting)
    at_work: list[int] = []

    async def counted() -> None:
        async with turns.one():
            at_work.append(1)
            assert len(at_work) <= 2
            await asyncio.sleep(0)
            at_work.pop()

    await asyncio.gather(*(counted() for _ in range(20)))


async def test_a_request_that_breaks_or_is_given_up_frees_its_turn() -> None:
    turns = Turns(1, short=60)
    with pytest.raises(RuntimeError, match="broken"):
        async with turns.one():
            raise RuntimeError("broken")
    holder = asyncio.create_task(_hold(turns))
    await asyncio.sleep(0)
    waiter = asyncio.create_task(_hold(turns))
    await asyncio.sleep(0)
    waiter.cancel()
    holder.cancel()
    await asyncio.gather(holder, waiter, return_exceptions=True)
    async with asyncio.timeout(5), turns.one():
        pass


async def _hold(turns: Turns) -> None:
    async with turns.one():
        await asyncio.sleep(60)
