"""The ingress of docs/workbench.md, as it stands there: a real nginx before the proxy, and a browser before it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from apps.workbench.proxy.contract import Refusal
from apps.workbench.proxy.origins import Origins, prefix_of
from tests.real.portal import ROOT, free_port
from tests.real.workbench import COOKIE, Sessions, gate, program, workbench

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")

CONFIG = """
daemon off;
pid {folder}/pid;
error_log stderr warn;
events {{ }}
http {{
    access_log off;
    {temporary}
    {example}
}}
"""
KEPT_IN = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


async def lab(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """A page that says which body it got, and a WebSocket that says everything again."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({**message, "type": "websocket.send"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
    await send({"type": "http.response.body", "body": b"%s %d" % (scope["raw_path"], len(body))})


def example(listens: int, passes_to: int) -> str:
    """The nginx of the docs, without TLS, for these ports of this machine."""
    text = (ROOT / "docs/workbench.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"```nginx\n(.*?)```", text, re.DOTALL)
    found = re.sub(r"\n *ssl_certificate[^\n]*", "", found)
    for said, here in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{listens};"),
        ("*.workbench.example.org", "*.localhost"),
        ("http://portal:8081", f"http://127.0.0.1:{passes_to}"),
    ):
        assert said in found
        found = found.replace(said, here)
    return found


@contextlib.asynccontextmanager
async def nginx(folder: Path, listens: int, passes_to: int) -> AsyncIterator[None]:
    temporary = "\n".join(f"{one}_temp_path {folder}/{one};" for one in KEPT_IN)
    config = CONFIG.format(folder=folder, temporary=temporary, example=example(listens, passes_to))
    (folder / "nginx.conf").write_text(config)
    assert NGINX is not None
    command = [NGINX, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    process = await asyncio.create_subprocess_exec(*command)
    try:
        async with asyncio.timeout(20):
            while not await accepts(listens):
                assert process.returncode is None
                await asyncio.sleep(0.05)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


class Browser:
    """One that has the cookies of the session's host, and no more."""

    def __init__(self, places: Origins, sessions: Sessions, host: str, client: httpx2.AsyncClient) -> None:
        self.places, self.sessions, self.host, self.client = places, sessions, host, client
        self.session_id = next(iter(sessions.of))
        self.prefix = prefix_of(self.session_id)
        self.cookies: dict[str, str] = {}

    async def ask(self, path: str, method: str = "GET", body: bytes | None = None, **more: str) -> httpx2.Response:
        sent = {"Host": self.host, "Accept": "text/html", "Cookie": self.cookie, **more}
        answer = await self.client.request(method, path, headers=sent, content=body)
        for one in answer.headers.get_list("set-cookie"):
            name, _, value = one.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    async def enter(self) -> httpx2.Response:
        """The way in, from the portal on, which has made the ticket."""
        begun = await self.ask(f"/.yardmaster/begin?next={self.prefix}lab")
        assert begun.status_code == 303
        assert begun.headers["location"].startswith(f"http://127.0.0.1:8080/sessions/{self.session_id}/open/?next=")
        return await self.ask(f"/.yardmaster/enter?ticket=ticket&next={self.prefix}lab")

    def socket(self, origin: str) -> connect:
        return connect(
            f"ws://{self.host}{self.prefix}channels", host="127.0.0.1", port=self.places.port, origin=origin,
            additional_headers={"Cookie": self.cookie}, proxy=None,
        )  # fmt: skip


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    sessions, behind = Sessions(), free_port()
    async with (
        program(lab, tmp_path / "program.sock") as handler,
        gate(handler) as (_, address),
        workbench(sessions, behind=behind) as places,
        nginx(tmp_path, places.port, behind),
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{places.port}", trust_env=False, timeout=20) as client,
    ):
        yield Browser(places, sessions, places.host_of(sessions.put(address)), client)


async def test_a_browser_gets_from_the_portal_to_the_sessions_page(browser: Browser):
    first = await browser.ask(f"{browser.prefix}lab")
    assert first.status_code == 303
    portal = f"http://127.0.0.1:8080/sessions/{browser.session_id}/open/?next={browser.prefix}lab"
    assert first.headers["location"] == portal
    entered = await browser.enter()
    assert (entered.status_code, entered.headers["location"]) == (303, f"{browser.prefix}lab")
    assert browser.cookies["yardmaster_workbench"] == COOKIE
    page = await browser.ask(f"{browser.prefix}lab")
    assert (page.status_code, page.text) == (200, f"{browser.prefix}lab 0")
    font = await browser.ask("/font.woff2?v=1")
    assert (font.status_code, font.headers["location"]) == (307, f"{browser.prefix}font.woff2?v=1")
    own = browser.places.of(browser.session_id)
    saved = await browser.ask(f"{browser.prefix}save", "PUT", bytes(3 << 20), Origin=own)
    assert (saved.status_code, saved.text) == (200, f"{browser.prefix}save {3 << 20}")


async def test_a_websocket_passes_and_one_of_another_origin_does_not(browser: Browser):
    await browser.enter()
    async with browser.socket(browser.places.of(browser.session_id)) as socket:
        await socket.send("hello")
        assert await socket.recv() == "hello"
    with pytest.raises(InvalidStatus) as refused:
        await browser.socket("http://evil.example")
    assert refused.value.response.status_code == 403


async def test_a_stopped_session_says_so_and_offers_a_start(browser: Browser):
    await browser.enter()
    browser.sessions.of[browser.session_id] = Refusal(
        503, "session_stopped", "Jupyter of ada", "It was stopped.", "", "http://127.0.0.1:8080/x", "Start it"
    )
    page = await browser.ask(f"{browser.prefix}lab")
    assert page.status_code == 503
    assert '<a href="http://127.0.0.1:8080/x">Start it</a>' in page.text


async def test_what_may_not_pass_is_refused_in_the_proxys_words(browser: Browser):
    await browser.enter()
    foreign = await browser.ask(f"{browser.prefix}x", "POST", b"x" * 100_000, Origin="http://evil.example")
    assert (foreign.status_code, foreign.json()["code"]) == (403, "origin_refused")
    browser.cookies["yardmaster_workbench"] = "bad"
    strange = await browser.ask(f"{browser.prefix}data", Accept="*/*")
    assert (strange.status_code, strange.json()["code"]) == (401, "not_signed_in")
    browser.host = f"other.localhost:{browser.places.port}"
    assert (await browser.ask(f"{browser.prefix}data")).status_code == 421
    assert (await browser.ask("/.yardmaster/authorize")).status_code == 404
