"""HTTP through the proxy: real servers, a real gate, and a program behind it that says what it got."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from apps.workbench.proxy.application import digest_of
from apps.workbench.proxy.contract import Admitted, Notice, Refusal
from apps.workbench.proxy.origins import Origins, prefix_of
from tests.real.workbench import COOKIE, Gate, Sessions, gate, program, workbench

MORE = b"x" * 65_536


async def told(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """A program: what it answers is said by the path below its prefix."""
    what = scope["path"].split("/", 3)[3]
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    headers = [(b"content-type", b"application/json")]
    if what == "odd":
        headers += [
            (b"set-cookie", b"_xsrf=1; Domain=localhost; Path=/w/"),
            (b"set-cookie", b"yardmaster_session=stolen; Path=/"),
            (b"set-cookie", b"=yardmaster_session=stolen; Path=/"),
            (b"strict-transport-security", b"max-age=1000"),
            (b"clear-site-data", b'"*"'),
            (b"access-control-allow-origin", b"*"),
            (b"service-worker-allowed", b"/"),
            (b"alt-svc", b'h3=":443"'),
            (b"server", b"odd"),
            (b"content-security-policy", b"default-src *"),
            (b"x-own", b"kept"),
        ]
    if what == "moved":
        await send({"type": "http.response.start", "status": 302, "headers": [(b"location", b"http://elsewhere/x")]})
        await send({"type": "http.response.body", "body": b""})
        return
    if what == "none":
        await send({"type": "http.response.start", "status": 304, "headers": [(b"etag", b'"1"')]})
        await send({"type": "http.response.body", "body": b""})
        return
    said = {
        "method": scope["method"], "path": scope["raw_path"].decode(), "query": scope["query_string"].decode(),
        "headers": [[name.decode(), value.decode()] for name, value in scope["headers"]], "body": len(body),
    }  # fmt: skip
    answer = json.dumps(said).encode()
    headers.append((b"content-length", str(len(answer)).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


class Place:
    """One session that runs, and a browser that has its cookie."""

    def __init__(self, sessions: Sessions, session_id: uuid.UUID, places: Origins, one: Gate) -> None:
        self.sessions, self.id, self.origins, self.gate = sessions, session_id, places, one
        self.host = places.host_of(session_id)
        self.prefix = prefix_of(session_id)
        self.headers = {"Host": self.host, "Cookie": f"yardmaster_workbench={COOKIE}"}
        self.client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{places.port}", trust_env=False, timeout=20)

    async def get(self, path: str = "", **headers: str) -> httpx2.Response:
        return await self.ask("GET", path, headers)

    async def ask(self, method: str, path: str, headers: dict[str, str], **more: Any) -> httpx2.Response:
        path = path if path.startswith("/") else self.prefix + path
        return await self.client.request(method, path, headers={**self.headers, **headers}, **more)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    sessions = Sessions()
    async with (
        program(told, tmp_path / "program.sock") as handler,
        gate(handler) as (one, address),
        workbench(sessions) as places,
    ):
        found = Place(sessions, sessions.put(address), places, one)
        async with found.client:
            yield found


async def test_what_passes_of_a_request(place: Place):
    answer = await place.get(
        "data?tag=a%20b",
        **{
            "Cookie": f"_xsrf=2; yardmaster_workbench={COOKIE}; __Host-yardmaster_session=secret; theme=dark",
            "Authorization": "Bearer ym_secret", "X-Forwarded-For": "1.2.3.4", "X-Forwarded-User": "root",
            "X_Forwarded_Host": "evil", "Forwarded": "for=1", "X-Real-IP": "1.2.3.4", "X-Yardmaster-User": "root",
            "Connection": "keep-alive, x-hop", "X-Hop": "1", "X-Own": "kept", "TE": "trailers",
        },
    )  # fmt: skip
    assert answer.status_code == 200
    said = answer.json()
    headers = dict(said["headers"])
    assert (said["path"], said["query"]) == (f"{place.prefix}data", "tag=a%20b")
    assert headers["cookie"] == "_xsrf=2; theme=dark"
    assert headers["host"] == place.host
    assert headers["x-own"] == "kept"
    assert (headers["x-forwarded-proto"], headers["x-forwarded-host"]) == ("http", place.host)
    unwanted = {"authorization", "x-forwarded-for", "x-forwarded-user", "x_forwarded_host", "forwarded", "x-real-ip"}
    assert not unwanted & set(headers)
    assert not {"x-yardmaster-user", "x-hop", "te", "connection"} & set(headers)
    assert place.sessions.used == [place.id]


async def test_what_passes_of_an_answer(place: Place):
    answer = await place.get("odd")
    assert answer.headers.get_list("set-cookie") == [f"_xsrf=1; Path={place.prefix}"]
    assert answer.headers["x-own"] == "kept"
    assert answer.headers.get_list("content-security-policy") == ["default-src *", "frame-ancestors 'self'"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    for name in ("strict-transport-security", "clear-site-data", "access-control-allow-origin",
                 "service-worker-allowed", "alt-svc", "server"):  # fmt: skip
        assert name not in answer.headers


async def test_bodies_of_all_framings_arrive_whole_and_connections_stay(place: Place):
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield MORE

    own = {"Origin": place.origins.of(place.id)}
    for method, more, size in (
        ("POST", {"content": b""}, 0),
        ("POST", {"content": MORE * 3}, len(MORE) * 3),
        ("PUT", {"content": pieces()}, len(MORE) * 40),
        ("DELETE", {}, 0),
        ("GET", {}, 0),
    ):
        answer = await place.ask(method, "x", own, **more)
        assert (answer.status_code, answer.json()["method"], answer.json()["body"]) == (200, method, size)
    assert place.gate.opened == 1
    assert (await place.ask("HEAD", "x", {})).status_code == 200
    assert (await place.get("none")).status_code == 304


async def test_a_request_with_two_hosts_is_refused(place: Place):
    reader, writer = await asyncio.open_connection("127.0.0.1", place.origins.port)
    head = (
        f"GET {place.prefix} HTTP/1.1\r\nHost: other\r\nHost: {place.host}\r\nCookie: {place.headers['Cookie']}\r\n\r\n"
    )
    writer.write(head.encode())
    answer = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    assert answer.split()[1] == b"400"
    assert place.gate.opened == 0


async def test_redirects_are_passed_and_not_followed(place: Place):
    answer = await place.get("moved")
    assert (answer.status_code, answer.headers["location"]) == (302, "http://elsewhere/x")
    begin = await place.get(place.prefix.rstrip("/") + "?a=b")
    assert (begin.status_code, begin.headers["location"]) == (308, f"{place.prefix}?a=b")


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"Origin": "http://evil.example"}, 403),
        ("POST", {"Origin": "null"}, 403),
        ("POST", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("POST", {}, 200),
        ("GET", {"Origin": "http://evil.example"}, 200),
        ("GET", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
    ],
)
async def test_pages_of_other_origins_only_lead_here(place: Place, method: str, headers: dict[str, str], status: int):
    assert (await place.ask(method, "x", headers)).status_code == status


async def test_who_has_no_cookie_is_sent_to_the_portal_or_told(place: Place):
    for cookie in ("", "yardmaster_workbench=bad"):
        page = await place.get("lab?x=1", Cookie=cookie, Accept="text/html")
        assert page.status_code == 303
        asked = f"/w/{place.id}/lab%3Fx%3D1"
        assert page.headers["location"] == f"http://127.0.0.1:8080/sessions/{place.id}/open/?next={asked}"
        assert page.headers["cache-control"] == "no-store"
        answer = await place.get("data", Cookie=cookie)
        assert (answer.status_code, answer.json()["code"]) == (401, "not_signed_in")
    assert place.gate.opened == 0


async def test_entering_with_a_ticket(place: Place):
    place.headers.pop("Cookie")
    begun = await place.get(f"/.yardmaster/begin?next={place.prefix}lab%3Fa=b")
    assert begun.status_code == 303
    name, _, value = begun.headers["set-cookie"].partition(";")[0].partition("=")
    assert begun.headers["set-cookie"] == f"{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=300"
    at_portal = f"http://127.0.0.1:8080/sessions/{place.id}/open/?next={place.prefix}lab%3Fa%3Db"
    assert begun.headers["location"] == f"{at_portal}&entry={digest_of(value)}"
    place.headers["Cookie"] = f"{name}={value}"
    entered = await place.get(f"/.yardmaster/enter?ticket=ticket&next={place.prefix}lab%3Fa=b")
    assert place.sessions.entries == [digest_of(value)]
    assert (entered.status_code, entered.headers["location"]) == (303, f"{place.prefix}lab?a=b")
    assert entered.headers["set-cookie"] == f"yardmaster_workbench={COOKIE}; Path=/; HttpOnly; SameSite=Lax"
    assert (entered.headers["referrer-policy"], entered.headers["cache-control"]) == ("no-referrer", "no-store")
    assert (await place.get(f"/.yardmaster/enter?ticket=bad&next={place.prefix}")).status_code == 403
    other = prefix_of(uuid.uuid4())
    for wrong in ("", "//evil.example/", "http://evil.example", other, f"{place.prefix}..%252f..%252f..%252fx",
                  f"{place.prefix}..%2f..%2fx", f"{place.prefix}%5cx", f"{place.prefix}%0dx"):  # fmt: skip
        answer = await place.get(f"/.yardmaster/enter?ticket=ticket&next={wrong}")
        assert (answer.status_code, answer.headers.get("set-cookie")) == (400, None), wrong


async def test_addresses_that_are_no_sessions(place: Place):
    assert (await place.get(Host="127.0.0.1")).status_code == 421
    assert (await place.get(Host=place.origins.host_of(uuid.uuid4()))).status_code == 404
    assert (await place.get(f"/w/{uuid.uuid4()}/")).status_code == 404
    assert (await place.ask("POST", "/", {})).status_code == 404
    assert (await place.get("/.yardmaster/other")).status_code == 404
    assert (await place.get("/.yardmaster/healthz", Host="anything")).text == "ok\n"
    assert place.sessions.asked == 0


async def test_its_pages_are_told_when_it_stops_and_asking_is_no_use_of_it(place: Place):
    script = await place.get(f"{place.prefix}.yardmaster/notice.js", **{"Sec-Fetch-Site": "same-origin"})
    assert script.headers["content-type"].startswith("text/javascript")
    at = f"{place.prefix}.yardmaster/notice"
    assert (await place.get(at)).json() == {}
    admitted = place.sessions.of[place.id]
    assert isinstance(admitted, Admitted)
    told = Notice("It stops in 2 min.", "http://127.0.0.1:8080/sessions/1/", "Extend")
    place.sessions.of[place.id] = replace(admitted, notice=told)
    assert (await place.get(at)).json() == told._asdict()
    place.sessions.of[place.id] = Refusal(503, "session_stopped", "Jupyter", "It was stopped.", "", "/x", "Start it")
    answer = await place.get(at)
    assert (answer.status_code, answer.json()["message"], answer.json()["link_text"]) == (
        503,
        "It was stopped.",
        "Start it",
    )
    assert (await place.get(at, Cookie="")).status_code == 401
    assert (place.sessions.used, place.gate.opened) == ([], 0)


async def test_paths_that_forget_the_prefix_lead_below_it(place: Place):
    for path in ("/", "/font-roboto/a.woff2?v=1", "/%5Cevil.example"):
        answer = await place.get(path)
        assert answer.status_code == 307
        assert answer.headers["location"] == place.prefix + path.lstrip("/")
    assert place.sessions.asked == 0


async def test_a_gate_that_does_not_know_the_key_gets_nothing(tmp_path: Path):
    sessions = Sessions()
    said: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said.append(await reader.read())

    async with gate(listen, "another key") as (one, address), workbench(sessions) as places:
        place = Place(sessions, sessions.put(address), places, one)
        async with place.client:
            answer = await place.get("x", Accept="text/html")
    assert answer.status_code == 502
    assert "cannot be reached" in answer.text
    assert said == []


async def test_one_user_does_not_take_everything(tmp_path: Path):
    sessions = Sessions()
    held = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await held.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()

    async with gate(hold) as (one, address), workbench(sessions, of_user=3) as places:
        place = Place(sessions, sessions.put(address), places, one)
        async with place.client:
            waiting = [asyncio.create_task(place.get("x")) for _ in range(3)]
            while one.opened < 3:
                await asyncio.sleep(0.01)
            refused = await place.get("x")
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_at_once")
            held.set()
            assert [(await answer).status_code for answer in waiting] == [200] * 3
            assert (await place.get("x")).status_code == 200


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "PROPFIND"])
async def test_methods_that_are_no_requests_of_pages_do_not_pass(place: Place, method: str):
    reader, writer = await asyncio.open_connection("127.0.0.1", place.origins.port)
    head = f"{method} {place.prefix} HTTP/1.1\r\nHost: {place.host}\r\nCookie: {place.headers['Cookie']}\r\n\r\n"
    writer.write(head.encode())
    answer = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    assert answer.split()[1] in (b"405", b"400")
    assert (await place.get("/.yardmaster/healthz")).text == "ok\n"
    assert place.sessions.asked == 0


async def test_an_ingress_learns_whether_a_request_may_pass(place: Place):
    path = f"{place.prefix}data/runs"

    async def asked(**headers: str) -> int:
        return (await place.get("/.yardmaster/authorize", Host="portal.internal", **headers)).status_code

    nginx = {"X-Original-URL": f"http://{place.host}{path}?a=1"}
    traefik = {"X-Forwarded-Host": place.host, "X-Forwarded-Uri": f"{path}?a=1", "X-Forwarded-Method": "POST"}
    other = place.origins.host_of(uuid.uuid4())
    assert await asked(**nginx) == 204
    assert place.sessions.used[-1] == place.id
    for one in (".yardmaster/notice", ".yardmaster/notice.js"):
        assert await asked(**{**nginx, "X-Original-URL": f"http://{place.host}{place.prefix}{one}"}) == 204
    assert len(place.sessions.used) == 1
    assert await asked(**traefik, Origin=f"http://{place.host}") == 204
    assert await asked(**traefik, Origin="https://evil.example") == 403
    assert await asked(**nginx, Upgrade="websocket", Origin="https://evil.example") == 403
    assert await asked(**nginx, Cookie="yardmaster_workbench=bad") == 401
    assert await asked() == 421
    assert await asked(**{**traefik, "X-Forwarded-Host": "127.0.0.1"}) == 421
    assert await asked(**{**traefik, "X-Forwarded-Host": other}) == 404
    assert await asked(**{**traefik, "X-Forwarded-Method": "CONNECT"}) == 405


async def test_nginx_hears_yes_or_no_as_it_makes_a_500_of_all_else(place: Place):
    path = f"{place.prefix}data/runs"

    async def asked(url: str, **headers: str) -> int:
        sent = {"X-Original-URL": url, **headers}
        return (await place.get("/.yardmaster/authorize", Host="portal.internal", **sent)).status_code

    here, other = f"http://{place.host}", place.origins.host_of(uuid.uuid4())
    for url in (f"http://127.0.0.1{path}", "http://[", f"http://{other}{path}", "http://127.0.0.1/.yardmaster/begin"):
        assert await asked(url) == 403, url
    assert await asked(here + path, **{"X-Original-Method": "CONNECT"}) == 403
    assert await asked(here + path, Cookie="", Accept="text/html") == 401
    place.sessions.of[place.id] = Refusal(503, "session_stopped", "Stopped", "It was stopped.")
    assert await asked(here + path) == 403


async def test_what_the_proxy_answers_itself_may_pass_an_ingress(place: Place):
    asked = place.sessions.asked
    for path in ("/.yardmaster/begin?next=/", "/.yardmaster/enter", "/", "/font.woff2", place.prefix.rstrip("/")):
        sent = {"Host": "portal.internal", "Cookie": "", "X-Forwarded-Host": place.host, "X-Forwarded-Uri": path}
        assert (await place.get("/.yardmaster/authorize", **sent)).status_code == 204, path
    assert place.sessions.asked == asked


async def test_an_ingress_that_passes_answers_on_shows_those_of_the_proxy(place: Place):
    asked = {"Host": "portal.internal", "X-Forwarded-Host": place.host, "X-Forwarded-Uri": f"{place.prefix}lab?x=1"}
    away = await place.get("/.yardmaster/authorize", **asked, Cookie="", Accept="text/html")
    assert away.status_code == 303
    expected = f"http://127.0.0.1:8080/sessions/{place.id}/open/?next=/w/{place.id}/lab%3Fx%3D1"
    assert away.headers["location"] == expected
    assert (await place.get("/.yardmaster/authorize", **asked, Cookie="")).status_code == 401
    place.sessions.of[place.id] = Refusal(503, "session_stopped", "Stopped", "It was stopped.")
    stopped = await place.get("/.yardmaster/authorize", **asked, Accept="text/html")
    assert (stopped.status_code, "It was stopped." in stopped.text) == (503, True)
