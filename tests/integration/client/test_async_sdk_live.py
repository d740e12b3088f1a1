"""The SDK for asyncio against a real portal: what it uploads, lists and launches is there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from yardmaster_client import PortalError, Yardmaster
from yardmaster_client.aio import AsyncYardmaster

pytestmark = pytest.mark.slow


async def test_code_and_data_are_uploaded_and_twenty_jobs_are_launched_and_waited_for(ada: Yardmaster, script: Path):
    async with AsyncYardmaster(ada.transport.url, ada.transport.token) as portal:
        code, data = await asyncio.gather(
            portal.code.put("async", [script], unless_same=True), portal.datasets.put("async-data", [script])
        )
        assert code.latest is not None
        assert data.name in [one.name async for one in portal.datasets.list(search="async")]
        spec = {"strategy": "single", "roles": {"worker": {"replicas": 1, "cpu": 0.1, "memory": "64Mi"}},
                "code": code.latest.id, "entry_point": "train.py"}  # fmt: skip
        launches = [portal.jobs.launch({**spec, "name": f"async-{number}"}) for number in range(20)]
        jobs = await asyncio.gather(*launches)
        waits = asyncio.ensure_future(portal.jobs.wait_all([one.id for one in jobs]))
        seen = [await portal.jobs.get(one.id) for one in jobs]
        assert {one.phase for one in seen} == {"QUEUED"}, "no worker runs here"
        assert not waits.done()
        await asyncio.gather(*[portal.jobs.stop(one.id) for one in jobs])
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        with pytest.raises(PortalError):
            await portal.models.get(jobs[0].id)
