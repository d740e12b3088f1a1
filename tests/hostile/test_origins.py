"""A page elsewhere that borrows a visitor's cookie, and a neighbour of the same domain that plants one."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from apps.jobs.consumers import websocket_urlpatterns as of_jobs
from apps.jobs.shell_sockets import websocket_urlpatterns as of_shells
from apps.logs.consumers import websocket_urlpatterns as of_logs
from tests.hostile.conftest import http
from tests.real.portal import LIGHT, RealPortal, free_port, real_portal
from tests.real.scene import Scene
from yardmaster_client import Job

pytestmark = [pytest.mark.slow, pytest.mark.linux]

PASSWORD = "correct horse battery"
LONG = "import time\nprint('a line of mine', flush=True)\ntime.sleep(600)\n"


@pytest.fixture
def job(attacked: Scene) -> Iterator[Job]:
    one = attacked.launch(LONG)
    yield one
    attacked.client.jobs.stop(one.id)
    attacked.settled(one)


@pytest.fixture
def cookie(attacked: Scene) -> str:
    """What the administrator's browser sends along with whatever any page asks of the portal's host."""
    with http(attacked.portal.url) as browser:
        sign_in(browser, "admin")
        return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


def sign_in(browser: httpx2.Client, name: str) -> httpx2.Response:
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get("/accounts/login/").text)
    assert found is not None
    form = {"csrfmiddlewaretoken": found[1], "login": name, "password": PASSWORD}
    answer = browser.post("/accounts/login/", data=form, headers={"Referer": str(browser.base_url)})
    assert answer.status_code == 302, answer.text
    return answer


def addresses(job: Job) -> dict[str, str]:
    """Every route of a WebSocket of users, with an address for it."""
    return {
        "ws/jobs/": "/ws/jobs/",
        "ws/jobs/<uuid:job_id>/": f"/ws/jobs/{job.id}/",
        "ws/jobs/<uuid:id>/logs/": f"/ws/jobs/{job.id}/logs/",
        "ws/jobs/<uuid:job_id>/tasks/<str:task>/shell/": f"/ws/jobs/{job.id}/tasks/worker-0/shell/",
    }


def opened(portal: RealPortal, path: str, cookie: str, origin: str | None) -> ClientConnection:
    address = portal.url.replace("http", "ws", 1) + path
    return connect(address, origin=None if origin is None else Origin(origin), additional_headers={"Cookie": cookie})


def test_no_websocket_is_forgotten_here(job: Job):
    of_runners = {"ws/task/shells/<uuid:shell_id>/"}
    assert set(addresses(job)) | of_runners == {str(one.pattern) for one in [*of_jobs, *of_logs, *of_shells]}


def test_a_page_on_another_port_of_the_host_reads_nothing_with_the_visitors_cookie(attacked, job, cookie):
    elsewhere = f"http://127.0.0.1:{free_port()}"
    for path in addresses(job).values():
        for origin in (elsewhere, elsewhere.rpartition(":")[0], attacked.portal.url.replace("http", "https"), "null"):
            with pytest.raises(InvalidStatus) as refused:
                opened(attacked.portal, path, cookie, origin)
            assert refused.value.response.status_code == 403, (path, origin)


def test_a_cookie_without_an_origin_reads_nothing(attacked, job, cookie):
    for path in addresses(job).values():
        with pytest.raises(InvalidStatus) as refused:
            opened(attacked.portal, path, cookie, None)
        assert refused.value.response.status_code == 403, path


def test_the_portals_own_pages_read_by_either_name(attacked, job, cookie):
    """As it is called by the public URL, and by another allowed name that the visitor uses."""
    for path in addresses(job).values():
        with opened(attacked.portal, path, cookie, attacked.portal.url) as own:
            assert own.recv(timeout=30)
    by_name = attacked.portal.url.replace("127.0.0.1", "localhost")
    headers = {"Cookie": cookie, "Host": by_name.removeprefix("http://")}
    address = by_name.replace("http", "ws", 1) + "/ws/jobs/"
    with connect(address, origin=Origin(by_name), additional_headers=headers) as own:
        assert own.recv(timeout=30)


def test_a_program_with_a_token_needs_no_origin(attacked, job):
    address = attacked.portal.url.replace("http", "ws", 1) + f"/ws/jobs/{job.id}/logs/"
    with connect(address, additional_headers={"Authorization": f"Bearer {attacked.token}"}) as program:
        assert program.recv(timeout=30)


# --- headers and cookies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/accounts/login/", "/api/v1/me/", "/nowhere", "/healthz", "/static/nothing.js"])
def test_no_answer_lets_a_page_use_the_visitors_devices(stranger: httpx2.Client, path: str):
    features = stranger.get(path).headers["Permissions-Policy"].split(", ")
    assert {"camera=()", "microphone=()", "geolocation=()", "usb=()", "payment=()"} <= set(features)


@pytest.fixture(scope="module")
def over_tls() -> Iterator[RealPortal]:
    """A portal whose address is https, as behind a proxy that says so."""
    settings = {"YARDMASTER_PUBLIC_URL": "https://localhost", "YARDMASTER_BEHIND_PROXY": "1"}
    with tempfile.TemporaryDirectory(prefix="yardmaster-tls-") as home, real_portal(Path(home), LIGHT, settings) as one:
        one.token_of("admin", is_staff=True)
        yield one


def test_over_tls_no_neighbour_can_plant_a_cookie(over_tls: RealPortal):
    """A browser takes a `__Host-` cookie over TLS alone, without a domain, for all paths."""
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1", "Host": "localhost"}
    with httpx2.Client(base_url=over_tls.url, headers={**headers, "Referer": "https://localhost/"}) as browser:
        page = browser.get("/accounts/login/")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
        planted = {"csrfmiddlewaretoken": token[1] if token else "", "login": "admin", "password": PASSWORD}
        secret = page.headers["Set-Cookie"].partition("=")[2].partition(";")[0]
        browser.cookies.clear()
        refused = browser.post("/accounts/login/", data=planted, headers={"Cookie": f"yardmaster_csrf={secret}"})
        assert refused.status_code == 403
        answer = browser.post("/accounts/login/", data=planted, headers={"Cookie": f"__Host-yardmaster_csrf={secret}"})
        assert answer.status_code == 302, answer.text
    given = [*page.headers.get_list("Set-Cookie"), *answer.headers.get_list("Set-Cookie")]
    ours = [line for line in given if "yardmaster_" in line]
    assert {line.partition("=")[0] for line in ours} == {
        "__Host-yardmaster_csrf", "__Host-yardmaster_device", "__Host-yardmaster_session",
    }  # fmt: skip
    for line in ours:
        assert {"Secure", "Path=/"} <= set(line.split("; ")), line
        assert "domain" not in line.lower(), line


def test_without_tls_the_cookies_have_plain_names(attacked: Scene):
    """A browser would drop a `__Host-` cookie that comes over plain HTTP, and nobody could sign in."""
    with http(attacked.portal.url) as browser:
        sign_in(browser, "admin")
        assert {"yardmaster_session", "yardmaster_csrf"} <= set(browser.cookies)
