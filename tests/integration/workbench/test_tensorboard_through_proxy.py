"""The real TensorBoard behind the runner's real gate, seen through the proxy."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import httpx2
import pytest

from apps.workbench.proxy.origins import prefix_of
from tests.integration.workbench.test_tensorboard import KEY, SESSION, Board, board, until, values
from tests.real.workbench import COOKIE, Sessions, workbench
from yardmaster.engines.base import Address

__all__ = ["board"]
pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

ID = uuid.UUID(SESSION)
MULTIRUN = "data/plugin/timeseries/timeSeries"


@pytest.fixture
async def browser(board: Board) -> AsyncIterator[httpx2.AsyncClient]:
    until(lambda: len(values(board, "digits-1/train", "loss")) == 20)
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
