"""What pages cost: bytes, requests and paint of a first view, statements of the database, and 500 idle WebSockets."""

from __future__ import annotations

import asyncio
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterable

import httpx2
from playwright.sync_api import Browser, StorageState
from websockets.asyncio.client import ClientConnection, connect

from tests.bench.lines import Line, interleaved, median
from tests.browser.addresses import ADDRESSES, Address
from tests.browser.visitor import chromium, cookies_of, lacks_chromium, visitor
from tests.browser.weight import MOST_BYTES, MOST_REQUESTS, Weight, weigh
from tests.browser.world import World, world
from tests.real.opened import signed_in

VIEWS = 3
SOCKETS = 500
ASKED = 40
ROUNDS = 5
_STATEMENTS = """
import json, sys
import django
django.setup()
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from apps.accounts.models import User
settings.ALLOWED_HOSTS = ["*"]
client = Client()
client.force_login(User.objects.get(username="ada"))
counts = {}
for path in json.loads(sys.argv[1]):
    client.get(path)
    with CaptureQueriesContext(connection) as asked:
        client.get(path)
    counts[path] = len(asked)
print(json.dumps(counts))
"""


def measure() -> Iterable[Line]:
    with world() as full:
        if lack := lacks_chromium():
            print(f"pages: first views are not measured: {lack}", flush=True)
        else:
            with chromium() as browser:
                yield from _first_views(browser, full)
        yield from _statements(full)
        yield from _idle_sockets(full)


def _first_views(browser: Browser, full: World) -> Iterable[Line]:
    """The heaviest of all pages, each seen with an empty cache."""
    state = cookies_of(browser, full.url, "ada")
    weights = {one.name: _weights(browser, full, one, state) for one in ADDRESSES}
    kilobytes = {name: max(one.bytes for one in found) / 1000 for name, found in weights.items()}
    requests = {name: float(max(one.requests for one in found)) for name, found in weights.items()}
    paints = {name: median(one.largest_paint for one in found) for name, found in weights.items()}
    yield _worst("pages: most bytes of a first view", kilobytes, "kB", MOST_BYTES / 1000)
    yield _worst("pages: most requests of a first view", requests, "", float(MOST_REQUESTS))
    yield _worst("pages: latest largest paint", paints, "s", 2.5)


def _weights(browser: Browser, full: World, address: Address, state: StorageState) -> list[Weight]:
    found = []
    for _ in range(VIEWS):
        with visitor(browser, full.url, storage_state=None if address.is_open else state) as one:
            one.forgive("status of 404")
            found.append(weigh(one, address.of(full), address.status))
    return found


def _worst(name: str, values: dict[str, float], unit: str, at_most: float) -> Line:
    page = max(values, key=lambda one: values[one])
    return Line(
        name, values[page], unit, at_most=at_most, note=f"{page}; the median page {median(values.values()):.3g}"
    )


def _statements(full: World) -> Iterable[Line]:
    closed = [one for one in ADDRESSES if not one.is_open]
    paths = {one.of(full): one for one in closed}
    counts: dict[str, int] = json.loads(full.portal.script(_STATEMENTS, json.dumps(list(paths))).splitlines()[-1])
    lists = {paths[path].name: float(count) for path, count in counts.items() if paths[path].is_list}
    details = {paths[path].name: float(count) for path, count in counts.items() if not paths[path].is_list}
    yield _worst("pages: most statements of a list", lists, "", 8.0)
    yield _worst("pages: most statements of any other page", details, "", 12.0)


def _idle_sockets(full: World) -> Iterable[Line]:
    token = full.portal.token_of("ada")
    with (
        httpx2.Client(base_url=full.url, headers={"Cookie": signed_in(full.url, "ada")}, timeout=30) as client,
        _Sockets(full, token) as sockets,
    ):
        alone, among = interleaved(
            lambda: sockets.none(lambda: _page_time(client)), lambda: sockets.all(lambda: _page_time(client)), ROUNDS
        )
    yield Line("a page of jobs, no other connections", median(alone) * 1000, "ms")
    ratio = median(among) / median(alone)
    yield Line(f"... beside {SOCKETS} idle WebSockets, ratio", ratio, "", at_most=1.2)


def _page_time(client: httpx2.Client) -> float:
    times = []
    for _ in range(ASKED):
        begun = time.perf_counter()
        answer = client.get("/jobs/")
        times.append(time.perf_counter() - begun)
        if answer.status_code != 200:
            raise RuntimeError(f"the list of jobs answered {answer.status_code}")
    return statistics.median(times)


class _Sockets:
    """Hundreds of WebSockets that listen for nudges, opened and closed as a measurement needs them."""

    def __init__(self, full: World, token: str) -> None:
        self._address = f"{full.url.replace('http', 'ws', 1)}/ws/jobs/"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._open: list[ClientConnection] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> _Sockets:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._await(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def none(self, measured: Callable[[], float]) -> float:
        self._await(self._close())
        return measured()

    def all(self, measured: Callable[[], float]) -> float:
        self._await(self._connect())
        return measured()

    def _await(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(180)  # type: ignore[arg-type]

    async def _connect(self) -> None:
        while len(self._open) < SOCKETS:
            more = (connect(self._address, additional_headers=self._headers) for _ in range(20))
            self._open += await asyncio.gather(*more)
        await asyncio.sleep(1)  # what they were greeted with has been said

    async def _close(self) -> None:
        await asyncio.gather(*(one.close() for one in self._open))
        self._open.clear()
        await asyncio.sleep(1)
