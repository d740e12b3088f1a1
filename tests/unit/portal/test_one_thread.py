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
from django.urls import clear_url_caches, path

from apps.api.slots import Slot
from portal.one_thread import OneThread
from portal.turns import WORK, Work

PATIENCE = 20
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
    start, content = await client.receive_output(PATIENCE), await client.receive_output(PATIENCE)
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


class Gate:
    """A view that waits until it is let go, and says how many are in it."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.open = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.open.wait(3 * PATIENCE)
        with self._lock:
            self.inside -= 1
        return HttpResponse("done")


async def ask(django: OneThread, work: Work, path: str = "/gate") -> ApplicationCommunicator:
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [], WORK: work}
    client = ApplicationCommunicator(django, scope)
    await client.send_input({"type": "http.request", "body": b""})
    return client


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
def gate(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Gate:
    one = Gate()
    monkeypatch.setitem(globals(), "urlpatterns", [path("gate", one), path("here", view), path("healthz", view)])
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = []
    settings.YARDMASTER_WEB_THREADS = 8
    clear_url_caches()
    return one


async def test_a_client_that_goes_away_keeps_its_place_until_its_work_is_done(gate: Gate) -> None:
    django, work = OneThread(), Work("ada", [Slot("expensive", 2, 0.0)])
    gone = [await ask(django, work), await ask(django, work)]
    await until(lambda: gate.inside == 2)
    for client in gone:
        await client.send_input({"type": "http.disconnect"})
    for _ in range(3):
        refused = await ask(django, work)
        assert (await refused.receive_output(PATIENCE))["status"] == 429
        await refused.receive_output(PATIENCE)
        await refused.wait()
    assert gate.most == 2
    gate.open.set()
    for client in gone:
        await client.wait()
    assert gate.inside == 0
    later = await ask(django, work)
    assert (await later.receive_output(PATIENCE))["status"] == 200
    await later.receive_output(PATIENCE)
    await later.wait()


async def test_one_caller_leaves_threads_to_others_and_the_keeper_is_always_answered(gate: Gate) -> None:
    django = OneThread()
    greedy = [await ask(django, Work("greedy")) for _ in range(20)]
    await until(lambda: gate.inside == 4)
    quick = [await ask(django, Work("other"), "/here")]
    assert (await quick[0].receive_output(PATIENCE))["status"] == 200
    more = [await ask(django, Work(f"other {number}")) for number in range(20)]
    await until(lambda: gate.inside == 8)
    quick.append(await ask(django, Work(), "/healthz"))
    assert (await quick[1].receive_output(PATIENCE))["status"] == 200
    gate.open.set()
    for client in [*greedy, *more]:
        assert (await client.receive_output(PATIENCE))["status"] == 200
    for client in [*greedy, *more, *quick]:
        await client.receive_output(PATIENCE)
        await client.wait()
