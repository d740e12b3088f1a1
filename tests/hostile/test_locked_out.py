"""A tenant who is locked keeps nothing: no session, no token, no open WebSocket, and no job where that is asked."""

from __future__ import annotations

from contextlib import ExitStack, suppress

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.hostile.conftest import http
from tests.hostile.test_origins import LONG, sign_in
from tests.real.scene import Scene, until
from yardmaster_client import Yardmaster

pytestmark = [pytest.mark.slow, pytest.mark.linux]

LOCKED_OUT = 4401


def closing_code(socket: ClientConnection) -> int:
    """With which the portal closes the socket, sooner than its consumers look for themselves (25 and 60 s)."""
    with suppress(ConnectionClosed):
        while True:
            socket.recv(timeout=20)
    return socket.close_code or 0


def launch_as(attacked: Scene, token: str) -> str:
    """The id of a job that runs and would do so for minutes."""
    with Yardmaster(attacked.portal.url, token) as client:
        mine = Scene.__new__(Scene)
        mine.client = client
        job = mine.launch(LONG)
        until(lambda: client.jobs.get(job.id).phase == "RUNNING")
    return job.id


@pytest.mark.parametrize("stop_jobs", [True, False])
def test_whoever_is_locked_out_loses_everything_at_once(attacked: Scene, stop_jobs: bool):
    name = f"mallory-{stop_jobs}".lower()
    token = attacked.portal.token_of(name)
    url = attacked.portal.url.replace("http", "ws", 1)
    job = launch_as(attacked, token)
    with ExitStack() as stack:
        admin = stack.enter_context(http(attacked.portal.url, attacked.token))
        browser = stack.enter_context(http(attacked.portal.url))
        sign_in(browser, name)
        cookie = "; ".join(f"{key}={value}" for key, value in browser.cookies.items())
        session = {"Cookie": cookie, "Origin": attacked.portal.url}
        tokened = {"Authorization": f"Bearer {token}"}
        paths = ("/ws/jobs/", f"/ws/jobs/{job}/", f"/ws/jobs/{job}/logs/")
        ways = [(path, who) for path in paths for who in (session, tokened)]
        ways.append(("/ws/jobs/", {"Authorization": f"Bearer {attacked.token}"}))
        *sockets, bystander = (stack.enter_context(connect(url + path, additional_headers=who)) for path, who in ways)
        for socket in (*sockets, bystander):
            assert socket.recv(timeout=30)
        user_id = browser.get("/api/v1/me/").json()["id"]
        answer = admin.post(f"/api/v1/users/{user_id}/lock/", json={"stop_jobs": stop_jobs})
        assert (answer.status_code, answer.json()) == (200, {"stopped_jobs": int(stop_jobs)})
        assert [closing_code(socket) for socket in sockets] == [LOCKED_OUT] * len(sockets)
        assert bystander.ping().wait(20), "a bystander's socket stays open"
        assert browser.get("/api/v1/me/").status_code == 401
        with http(attacked.portal.url, token) as program:
            assert program.get("/api/v1/me/").status_code == 401
            assert program.post("/api/v1/jobs/", json={}).status_code == 401
        if stop_jobs:
            assert attacked.client.jobs.wait(job, timeout=90).phase == "STOPPED"
        else:
            assert attacked.client.jobs.get(job).wanted == "RUN"
            attacked.client.jobs.stop(job)
        told = admin.get("/api/v1/audit/", params={"action": "user.lock"}).json()["results"][0]
        assert (told["subject"], told["facts"]["stopped_jobs"]) == (f"user:{user_id}", int(stop_jobs))
    attacked.settled(attacked.client.jobs.get(job))


def test_a_tenant_locks_nobody_out_and_an_administrator_not_himself(attacked: Scene, tenant):
    mallory, victim = tenant("mallory"), tenant("victim")
    user_id = victim.get("/api/v1/me/").json()["id"]
    assert mallory.post(f"/api/v1/users/{user_id}/lock/", json={"stop_jobs": True}).status_code == 403
    with http(attacked.portal.url, attacked.token) as admin:
        own = admin.get("/api/v1/me/").json()["id"]
        assert admin.post(f"/api/v1/users/{own}/lock/", json={}).status_code == 409
    assert victim.get("/api/v1/me/").status_code == 200
