"""The real TensorBoard behind the runner's real gate, seen through the proxy."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import AsyncIterator
from http.client import HTTPConnection

import httpx2
import pytest

from apps.workbench.proxy.origins import prefix_of
from tests.integration.workbench.test_tensorboard import KEY, SESSION, Board, board
from tests.real.workbench import COOKIE, Sessions, workbench
from tests.real.workbench_server import own_process
from yardmaster.engines.base import Address

__all__ = ["board"]
pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

ID = uuid.UUID(SESSION)
MULTIRUN = "data/plugin/timeseries/timeSeries"


@pytest.fixture
async def browser(board: Board) -> AsyncIterator[httpx2.AsyncClient]:
    sessions = Sessions()
    sessions.put(Address("127.0.0.1", board.gate.port), KEY, ID)
    async with workbench(sessions) as places:
        headers = {
            "Host": places.host_of(ID), "Cookie": f"yardmaster_workbench={COOKIE}",
            "Origin": places.of(ID), "Sec-Fetch-Site": "same-origin",
        }  # fmt: skip
        base = f"http://127.0.0.1:{places.port}{prefix_of(ID)}"
        async with httpx2.AsyncClient(base_url=base, headers=headers, trust_env=False, timeout=60) as client:
            yield client


async def test_its_pages_and_its_data(browser: httpx2.AsyncClient):
    page = await browser.get("")
    assert page.status_code == 200
    assert "text/html" in page.headers["content-type"]
    assert page.headers.get_list("content-security-policy")[-1] == "frame-ancestors 'self'"
    assert "server" not in page.headers
    assert (await browser.get("index.js")).status_code == 200
    assert "digits-1/train" in (await browser.get("data/runs")).json()
    asked = {"requests": '[{"plugin": "scalars", "tag": "loss"}]'}
    answer = await browser.post(MULTIRUN, data=asked)
    assert answer.status_code == 200
    assert len(answer.json()[0]["runToSeries"]["digits-1/train"]) == 20
    refused = await browser.post(MULTIRUN, data=asked, headers={"Origin": "http://evil.example"})
    assert refused.status_code == 403
    assert (await browser.get("nothing-here")).status_code == 404


def test_what_the_proxy_adds_to_a_request(board: Board):
    """With clients that cost little, so that the difference is the proxy."""
    path = f"{prefix_of(ID)}data/plugin/scalars/scalars?run=digits-1/train&tag=loss"
    direct: list[float] = []
    proxied: list[float] = []
    with own_process(board.gate.port, ID, KEY) as (places, _):
        headers = {"Host": places.host_of(ID), "Cookie": f"yardmaster_workbench={COOKIE}"}
        ways = ((board.connection(), direct), (HTTPConnection("127.0.0.1", places.port, timeout=60), proxied))
        for _ in range(400):
            for connection, times in ways:
                begun = time.perf_counter()
                connection.request("GET", path, headers=headers)
                assert len(connection.getresponse().read()) > 100
                times.append(time.perf_counter() - begun)
        for connection, _ in ways:
            connection.close()
    once, through = (statistics.median(times) * 1e3 for times in (direct, proxied))
    print(f"TensorBoard: direct {once:.2f} ms, through the proxy {through:.2f} ms ({through / once:.2f} times)")
    assert through < 2 * once + 1, "see `make bench` for the goal, on a machine that does nothing else"
