"""Polling for a token: how often, until when, and what ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.client.flaky_server import Asked, FlakyServer
from yardmaster_client import device
from yardmaster_client.errors import NotReachable, PortalError
from yardmaster_client.transport import Transport

GIVEN = {
    "device_code": "long", "user_code": "BCDF-GHJK", "verification_uri": "http://portal/device/", "expires_in": 600,
    "verification_uri_complete": "http://portal/device/?code=BCDF-GHJK", "interval": 5,
}  # fmt: skip


def refused(code: str, **more: Any) -> tuple[int, Any]:
    return 400, {"code": code, "error": code, "detail": code, **more}


def signed_in(server: FlakyServer, transport: Transport, *answers: tuple[int, Any] | None, **more: Any):
    pauses: list[float] = []
    shown: list[device.Asked] = []
    server.answers = [(200, GIVEN | more), *answers]
    try:
        token = device.sign_in(transport, shown.append, name="n", scopes=["read", "jobs"], sleep=pauses.append)
    except (PortalError, NotReachable) as error:
        return error, pauses, shown
    return token, pauses, shown


def test_it_polls_until_the_user_has_confirmed(server: FlakyServer, transport: Transport):
    token, pauses, shown = signed_in(
        server, transport, refused("authorization_pending"), (503, {}), (200, {"access_token": "ym_1"})
    )
    assert (token, pauses) == ("ym_1", [5.0, 5.0])
    assert shown == [device.Asked("BCDF-GHJK", "http://portal/device/", "http://portal/device/?code=BCDF-GHJK", 600)]
    bodies = [json.loads(one.body) for one in server.asked]
    assert bodies[0] == {"name": "n", "client_id": "yardmaster-client", "scope": "read jobs"}
    assert bodies[-1]["device_code"] == "long"
    assert bodies[-1]["client_id"] == "yardmaster-client"


def test_a_portal_that_asks_for_more_time_gets_it(server: FlakyServer, transport: Transport):
    answers = [refused("slow_down", interval=20), refused("slow_down"), (200, {"access_token": "t"})]
    assert signed_in(server, transport, *answers)[1] == [5.0, 20.0, 25.0]


@pytest.mark.parametrize("code", ["access_denied", "expired_token", "invalid_grant", "too_many_tokens"])
def test_what_is_final_ends_it(server: FlakyServer, transport: Transport, code: str):
    error, pauses, _ = signed_in(server, transport, refused(code))
    assert (error.code, pauses) == (code, [5.0])


def test_a_portal_that_is_away_for_a_moment_is_waited_for(server: FlakyServer, transport: Transport):
    cuts: list[tuple[int, Any] | None] = [None] * 5
    token, pauses, _ = signed_in(server, transport, *cuts, (200, {"access_token": "t"}))
    assert (token, pauses) == ("t", [5.0, 5.0])


def test_one_that_stays_away_is_not_waited_for_for_ever(server: FlakyServer, transport: Transport):
    error, _, _ = signed_in(server, transport, None, expires_in=-1)
    assert isinstance(error, NotReachable)


def test_the_address_alone_will_do(server: FlakyServer, transport: Transport):
    def answer(asked: Asked) -> tuple[int, Any]:
        given = {key: value for key, value in GIVEN.items() if key not in ("verification_uri_complete", "interval")}
        return (200, {"access_token": "t"}) if "token" in asked.path else (200, given)

    server.by_path = answer
    shown: list[device.Asked] = []
    assert device.sign_in(transport, shown.append, name="n", sleep=lambda pause: None) == "t"
    assert shown[0].address_with_code == "http://portal/device/"
