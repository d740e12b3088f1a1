"""The real JupyterLab seen through the proxy, behind a gate: its page, its XSRF cookie, its kernels' WebSockets."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.client import connect

from apps.workbench.proxy.origins import prefix_of
from tests.integration.workbench.jupyter_session import SESSION, _execute, jupyter_session
from tests.real.workbench import COOKIE, KEY, Sessions, gate, piped_to, workbench

pytestmark = [pytest.mark.slow, pytest.mark.workbench, pytest.mark.timeout(200)]

ID = uuid.UUID(SESSION)
PROTOCOL = "v1.kernel.websocket.jupyter.org"


async def test_a_notebook(tmp_path: Path):
    sessions = Sessions()
    with jupyter_session(tmp_path / "w", tmp_path / "home") as jupyter:
        await asyncio.to_thread(lambda: jupyter.client)  # until it answers
        async with gate(piped_to(Path(jupyter.socket))) as (_, address), workbench(sessions) as places:
            sessions.put(address, KEY, ID)
            origin, host, prefix = places.of(ID), places.host_of(ID), prefix_of(ID)
            headers = {"Host": host, "Cookie": f"yardmaster_workbench={COOKIE}", "Origin": origin}
            base = f"http://127.0.0.1:{places.port}{prefix}"
            async with httpx2.AsyncClient(base_url=base, headers=headers, trust_env=False, timeout=60) as client:
                moved = await client.get("")
                assert (moved.status_code, moved.headers["location"]) == (302, f"{prefix}lab?")
                page = await client.get("lab")
                assert page.status_code == 200
                assert "server" not in page.headers
                own = [one.partition(";")[0] for one in page.headers.get_list("set-cookie")]
                (xsrf,) = [one for one in own if one.startswith("_xsrf=")]
                cookies = "; ".join([*own, f"yardmaster_workbench={COOKIE}"])
                token = {"Cookie": cookies, "X-XSRFToken": xsrf.partition("=")[2]}
                assert (await client.post("api/kernels", json={}, headers={"Cookie": cookies})).status_code == 403
                made = await client.post("api/kernels", json={"name": "python3"}, headers=token)
                assert made.status_code == 201
                assert made.headers["location"].startswith(prefix)
                channels = f"ws://{host}{prefix}api/kernels/{made.json()['id']}/channels"
                more = {"host": "127.0.0.1", "port": places.port, "origin": origin, "proxy": None, "max_size": None}
                async with connect(
                    channels, additional_headers={"Cookie": cookies}, subprotocols=[PROTOCOL], **more
                ) as socket:
                    assert socket.subprotocol == PROTOCOL
                async with connect(channels, additional_headers={"Cookie": cookies}, **more) as socket:
                    asked = uuid.uuid4().hex
                    await socket.send(json.dumps(_execute("print('x' * 3_000_000)", asked)))
                    printed, is_idle = 0, False
                    async with asyncio.timeout(90):
                        while not is_idle:
                            message = json.loads(await socket.recv())
                            kind, content = message["header"]["msg_type"], message["content"]
                            printed += len(content["text"]) if kind == "stream" else 0
                            is_idle = message["parent_header"].get("msg_id") == asked and (
                                kind == "status" and content["execution_state"] == "idle"
                            )
                    assert printed == 3_000_001
