"""Signing in by a code that the user confirms in a browser (RFC 8628): no password passes through this program."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from yardmaster_client.errors import NotReachable, PortalError
from yardmaster_client.transport import Transport

CLIENT_ID = "yardmaster-client"
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_SLOWER = 5
_WAITING = {"authorization_pending", "slow_down"}


@dataclass(frozen=True)
class Asked:
    """What the user is shown."""

    user_code: str
    address: str
    """Where the code is typed."""
    address_with_code: str
    expires_in: int
    """Seconds."""


def sign_in(
    transport: Transport,
    show: Callable[[Asked], object],
    *,
    name: str,
    scopes: Sequence[str] = (),
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """A new personal token, called `name`, once the user has confirmed it.

    Raises:
        PortalError: `access_denied` or `expired_token`. NotReachable: the portal does not answer, and the code has
            expired meanwhile.
    """
    given = transport.post("auth/device/", {"name": name, "client_id": CLIENT_ID, "scope": " ".join(scopes)})
    complete = given.get("verification_uri_complete") or given["verification_uri"]
    show(Asked(given["user_code"], given["verification_uri"], complete, int(given["expires_in"])))
    body = {"device_code": given["device_code"], "client_id": CLIENT_ID, "grant_type": GRANT}
    pause = float(given.get("interval", 5))
    deadline = time.monotonic() + float(given["expires_in"])
    while True:
        sleep(pause)
        try:
            answer: dict[str, Any] = transport.post("auth/device/token/", body)
        except PortalError as error:
            if error.code not in _WAITING:
                raise
            if error.code == "slow_down":
                pause = float(error.facts.get("interval", pause + _SLOWER))
        except NotReachable:
            if time.monotonic() > deadline:
                raise
        else:
            return str(answer["access_token"])
