"""Whom sessions of the workbench refuse in a browser: after a sign-out, other users, pages of other origins, and those
that have a ticket or a cookie of another."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, WebSocket, expect

from tests.browser.visitor import Visitor, visitor
from tests.browser.workbench import STARTS, has_lab, new_notebook, shows_sign_in, sign_out_elsewhere, status
from tests.browser.world import World
from yardmaster_client.sessions import Session

pytestmark = [pytest.mark.tensorflow, pytest.mark.linux, pytest.mark.timeout(400)]
SESSION, PORTAL, ENTRY = "yardmaster_workbench", "yardmaster_session", "yardmaster_entry"
"""Names of cookies: of a session, of the portal, and of a browser that begins to enter a session."""
ENDS = 30_000
"""Milliseconds within which a sign-out ends open WebSockets."""

FREE = {"bypass_csp": True}
"""Options of a browser in which no policy keeps a page from sending what the portal must refuse."""


class Sessions(NamedTuple):
    """Ada's, which run for all tests of this file."""

    jupyter: Session
    board: Session


@pytest.fixture(scope="module")
def sessions(empty_world: World) -> Iterator[Sessions]:
    client = empty_world.client.sessions
    ids = [client.start(kind).id for kind in ("jupyter", "tensorboard")]
    ready = [client.wait(one, timeout=STARTS / 1000) for one in ids]
    assert [one.state for one in ready] == ["ready", "ready"]
    yield Sessions(*ready)
    for one in ids:
        client.stop(one)


@pytest.fixture(scope="module")
def foreign_port() -> Iterator[int]:
    """The port of a server with pages that are no one's."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _EmptyPages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


class _EmptyPages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_one_sign_out_ends_a_jupyter_and_a_tensorboard(
    browser: Browser, empty_world: World, sessions: Sessions
) -> None:
    with visitor(browser, empty_world.url) as ada:
        ada.sign_in("ada")
        jupyter, board = ada.page, ada.another_tab()
        sockets: list[WebSocket] = []
        jupyter.on("websocket", lambda one: sockets.append(one))
        jupyter.goto(ada.url + sessions.jupyter.url)
        has_lab(jupyter)
        new_notebook(jupyter)
        board.goto(ada.url + sessions.board.url)
        expect(board.locator("tb-webapp")).to_be_attached(timeout=STARTS)
        # Whatever JupyterLab has connected again since, one is open.
        [kernel] = [one for one in sockets if _is_of_a_kernel(one) and not one.is_closed()]
        looks = ((jupyter, _data(sessions.jupyter)), (board, _data(sessions.board)))
        assert [status(*look) for look in looks] == [200, 200]
        ada.forgive("")  # both pages report that they are refused
        sign_out_elsewhere(ada)
        assert [status(*look) for look in looks] == [401, 401]
        if not kernel.is_closed():
            kernel.wait_for_event("close", timeout=ENDS)
        for page, _ in looks:
            page.goto(page.url)
            shows_sign_in(page)


def test_pages_of_other_origins_are_refused(
    browser: Browser, empty_world: World, sessions: Sessions, foreign_port: int
) -> None:
    with visitor(browser, empty_world.url, **FREE) as ada:
        ada.sign_in("ada")
        jupyter, board = ada.page, ada.another_tab()
        origin, _ = _enter(ada, jupyter, sessions.jupyter), _enter(ada, board, sessions.board)
        assert _attempts(jupyter, origin, sessions.jupyter) == {"cors": "200", "no-cors": "200", "socket": "open"}
        ada.forgive("")
        host = urlsplit(origin).hostname
        same_host, another_site = ada.another_tab(), ada.another_tab()
        same_host.goto(f"http://{host}:{foreign_port}/")  # its requests have Ada's cookies: these know no ports
        another_site.goto(f"http://127.0.0.1:{foreign_port}/")
        for page in (same_host, another_site, board):
            found = _attempts(page, origin, sessions.jupyter)
            # A Jupyter refuses sockets of other origins, too, and browsers hide answers from other origins. That the
            # portal refuses all of it is tested without them; here the form shows it.
            assert found == {"cors": "refused", "no-cors": "refused", "socket": "refused"}, page.url
            with page.expect_navigation() as sent:
                page.evaluate(_SEND_FORM, f"{origin}/w/{sessions.jupyter.id}/api/kernels")
            assert (sent.value.status, sent.value.json()["code"]) == (403, "origin_refused"), page.url


def test_used_and_old_tickets_are_refused(browser: Browser, empty_world: World, sessions: Sessions) -> None:
    with visitor(browser, empty_world.url) as ada, visitor(browser, empty_world.url) as stranger:
        ada.sign_in("ada")
        for one in (ada, stranger):
            one.forgive("403")
        requests: list[str] = []
        ada.page.on("request", lambda request: requests.append(request.url))
        origin = _enter(ada, ada.page, sessions.board)
        entered = [one for one in requests if "/.yardmaster/enter?" in one]
        assert len(entered) == 1
        for page in (ada.page, stranger.page):
            _shows_bad_ticket(page, entered[0])
        cookies = _cookies(ada.context, origin)
        sign_in = _cookies(ada.context, ada.url)[PORTAL]
        made = empty_world.portal.script(_MAKE_TICKETS, sessions.board.id, sign_in, cookies[ENTRY])
        place = quote(_data(sessions.board), safe="")
        old, fresh = (f"{origin}/.yardmaster/enter?ticket={one}&next={place}" for one in made.split())
        _shows_bad_ticket(ada.page, old)
        _shows_bad_ticket(stranger.page, fresh)
        ada.goto(fresh)
        assert ada.page.url == origin + _data(sessions.board)
        _shows_bad_ticket(ada.page, fresh)


def test_cookies_of_elsewhere_and_forged_headers_open_nothing(
    browser: Browser, empty_world: World, sessions: Sessions
) -> None:
    with visitor(browser, empty_world.url) as ada, visitor(browser, empty_world.url, **FREE) as thief:
        ada.sign_in("ada")
        origins = [_enter(ada, ada.page, one) for one in sessions]
        of_jupyter, of_board = (_cookies(ada.context, one)[SESSION] for one in origins)
        of_portal = _cookies(ada.context, ada.url)[PORTAL]
        thief.forgive("40[14]|421")
        at_jupyter = (origins[0], sessions.jupyter)
        assert _status_with(thief, *at_jupyter, {SESSION: of_jupyter}) == 200  # so copied cookies are sent
        assert _status_with(thief, *at_jupyter, {SESSION: of_board}) == 401
        assert _status_with(thief, *at_jupyter, {SESSION: of_portal, PORTAL: of_portal}) == 401
        assert _status_with(thief, origins[1], sessions.board, {SESSION: of_jupyter}) == 401
        assert _status_with(thief, origins[1], sessions.jupyter, {SESSION: of_jupyter}) == 404
        forged = {"X-Forwarded-User": "ada", "Remote-User": "ada", "Authorization": "Bearer x"}
        assert _status_with(thief, *at_jupyter, {}, **forged) == 401
        thief.page.goto(origins[0] + _data(sessions.jupyter))
        shows_sign_in(thief.page)
        _put_cookies(thief.context, ada.url, {SESSION: of_jupyter, PORTAL: of_jupyter})
        thief.page.goto(ada.url + sessions.jupyter.url)
        shows_sign_in(thief.page)
        assert status(thief.page, "/api/v1/me/") == 401


def test_another_user_is_refused(browser: Browser, empty_world: World, sessions: Sessions) -> None:
    with visitor(browser, empty_world.url) as ada, visitor(browser, empty_world.url, **FREE) as bob:
        ada.sign_in("ada")
        origins = [_enter(ada, ada.page, one) for one in sessions]
        bob.sign_in("bob")
        bob.forgive("40[14]")
        for session, origin in zip(sessions, origins, strict=True):
            bob.goto(f"/sessions/{session.id}/", status=404)
            bob.goto(session.url, status=404)
            bob.goto(f"{origin}/w/{session.id}/", status=404)
            expect(bob.page.get_by_text("no such session")).to_be_visible()
        stolen = {SESSION: _cookies(ada.context, origins[0])[SESSION]}
        assert _status_with(bob, origins[1], sessions.board, stolen) == 401
        bob.goto(origins[1] + _data(sessions.board), status=404)


def _is_of_a_kernel(socket: WebSocket) -> bool:
    return socket.url.partition("?")[0].endswith("/channels")


def _data(session: Session) -> str:
    """What the session's pages ask for."""
    return f"/w/{session.id}/{'api/kernels' if session.kind == 'jupyter' else 'data/runs'}"


def _enter(person: Visitor, page: Page, session: Session) -> str:
    """Let the browser into the session, without its page, which takes seconds; the session's origin."""
    page.goto(f"{person.url}{session.url}?next={quote(_data(session), safe='')}")
    page.wait_for_url(re.compile(re.escape(_data(session)) + "$"))
    return page.url.removesuffix(_data(session))


def _attempts(page: Page, origin: str, jupyter: Session) -> dict[str, str]:
    """What comes of the requests and the WebSocket by which the page tries to reach a Jupyter."""
    below = f"{origin}/w/{jupyter.id}/api"
    socket = f"{below.replace('http', 'ws', 1)}/events/subscribe"
    return page.evaluate(_ATTEMPTS, [f"{below}/kernels", socket])  # type: ignore[no-any-return]


def _shows_bad_ticket(page: Page, address: str) -> None:
    response = page.goto(address)
    assert response is not None
    assert response.status == 403
    expect(page.get_by_role("heading", name="This ticket is not valid")).to_be_visible()


def _status_with(thief: Visitor, origin: str, session: Session, cookies: dict[str, str], **headers: str) -> int:
    """What a page of this origin gets of the session in a browser with these cookies of the origin alone."""
    thief.context.clear_cookies(domain=urlsplit(origin).hostname)
    _put_cookies(thief.context, origin, cookies)
    thief.page.goto(f"{origin}/.yardmaster/healthz")
    return status(thief.page, _data(session), **headers)


def _cookies(context: BrowserContext, url: str) -> dict[str, str]:
    return {one["name"]: one["value"] for one in context.cookies(url)}


def _put_cookies(context: BrowserContext, url: str, cookies: dict[str, str]) -> None:
    context.add_cookies([{"name": name, "value": value, "url": url} for name, value in cookies.items()])


_ATTEMPTS = """async ([address, socketAddress]) => {
    const refused = () => "refused";
    const found = {};
    for (const mode of ["cors", "no-cors"])
        found[mode] = await fetch(address, { mode, credentials: "include" }).then((one) => String(one.status), refused);
    found.socket = await new Promise((resolve) => {
        const socket = new WebSocket(socketAddress);
        socket.onopen = () => resolve("open");
        socket.onerror = socket.onclose = () => resolve("refused");
    });
    return found;
}"""
_SEND_FORM = """(address) => {
    const form = document.createElement("form");
    Object.assign(form, { action: address, method: "post" });
    document.body.append(form);
    form.submit();
}"""
_MAKE_TICKETS = """
import sys, time
from unittest import mock
import django
django.setup()
from apps.accounts.models import User
from apps.workbench.entrances import TICKET_LASTS, ticket_create
from apps.workbench.models import WorkbenchSession
from apps.workbench.proxy.application import digest_of
user, session = User.objects.get(username="ada"), WorkbenchSession.objects.get(pk=sys.argv[1])
then = time.time() - TICKET_LASTS.total_seconds() - 1
with mock.patch("time.time", return_value=then):
    print(ticket_create(user, session, sys.argv[2], digest_of(sys.argv[3])))
print(ticket_create(user, session, sys.argv[2], digest_of(sys.argv[3])))
"""
"""Prints an old ticket and a fresh one, for the same browser."""
