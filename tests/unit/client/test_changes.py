"""Waiting for a job: woken by the portal where it can be listened to, and looking by itself where it cannot."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from websockets.sync.server import ServerConnection, serve

from yardmaster_client.changes import LOOK_EVERY, Changes
from yardmaster_client.transport import Transport

LONG = 20.0


@contextmanager
def portal_that(speaks: Callable[[ServerConnection], None]) -> Iterator[Transport]:
    with serve(speaks, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        host, port = server.socket.getsockname()[:2]
        try:
            with closing(Transport(f"http://{host}:{port}", "secret")) as transport:
                yield transport
        finally:
            server.shutdown()
            thread.join()


def seconds_of(action: Callable[[], None]) -> float:
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


def say(socket: ServerConnection, kind: str, **more: str) -> None:
    socket.send(json.dumps({"type": kind, **more}))


def test_a_change_ends_the_wait_and_what_came_with_it_does_not_end_the_next() -> None:
    asked: list[tuple[str, str]] = []
    changed, arrived, seen = threading.Event(), threading.Event(), threading.Event()

    def speaks(socket: ServerConnection) -> None:
        assert socket.request is not None
        asked.append((socket.request.path, socket.request.headers["Authorization"]))
        say(socket, "ready")
        changed.wait(LONG)
        for kind in ("ping", "job", "job", "job"):
            say(socket, kind)
        for _ in range(2):  # the second ping is answered when all that came before the first has been taken
            socket.ping().wait(LONG)
        arrived.set()
        seen.wait(LONG)

    with portal_that(speaks) as transport, Changes(transport, "j1") as changes:
        changes.wait(LONG)  # `ready`: what happened before was not told
        begun = time.monotonic()
        threading.Timer(0.3, changed.set).start()
        changes.wait(LONG)
        assert 0.2 < time.monotonic() - begun < LONG / 2
        assert arrived.wait(LONG)
        changes.wait(0.5)
        assert seconds_of(lambda: changes.wait(0.2)) >= 0.19
        seen.set()
    assert asked == [("/ws/jobs/j1/", "Bearer secret")]


@pytest.mark.parametrize("details", [False, True])
def test_who_waits_for_the_end_is_not_woken_by_details(details: bool) -> None:
    may_end, woken, seen = threading.Event(), threading.Event(), threading.Event()

    def speaks(socket: ServerConnection) -> None:
        say(socket, "ready")
        while not may_end.wait(0.05):
            say(socket, "job", about="details")
        say(socket, "job")
        seen.wait(LONG)

    with portal_that(speaks) as transport, Changes(transport, "j1", details=details) as changes:
        changes.wait(LONG)
        waiting = threading.Thread(target=lambda: (changes.wait(LONG), woken.set()))
        waiting.start()
        assert woken.wait(LONG / 2 if details else 1.0) == details
        may_end.set()
        assert woken.wait(LONG / 2)
        waiting.join()
        seen.set()


def test_without_a_socket_the_job_is_looked_at_twice_a_second() -> None:
    with closing(Transport("http://127.0.0.1:9", "secret")) as transport, Changes(transport, "j1") as changes:
        for _ in range(2):
            assert LOOK_EVERY * 0.9 < seconds_of(lambda: changes.wait(LONG)) < LONG / 2


def test_a_cut_connection_costs_one_look() -> None:
    with portal_that(lambda socket: socket.close(1013)) as transport, Changes(transport, "j1") as changes:
        assert seconds_of(lambda: changes.wait(LONG)) < LONG / 2


def test_no_wait_is_longer_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yardmaster_client.changes.LOOK_EVERY", LONG)
    with closing(Transport("http://127.0.0.1:9", "secret")) as transport, Changes(transport, "j1") as changes:
        assert seconds_of(lambda: changes.wait(0.0)) < LONG / 2
