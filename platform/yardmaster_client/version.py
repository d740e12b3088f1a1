"""Which client this is, and which API it speaks. Read by the portal too, which serves this package as a wheel."""

from __future__ import annotations

import re

VERSION = "0.1.0"
"""Raised with each change of this package that is released: pip keeps what has the same version."""
API = 1
"""The major version of the portal's API that this client speaks, `/api/v1/`."""
HEADER = "Yardmaster-Client"
"""What a client says of itself with each request: `0.1.0; api=1`."""
ANSWERED = "Yardmaster-Portal"
"""What the portal says to such a client: `0.2.0; api=1; oldest-client=0.1.0`."""

NOTICE = "Yardmaster-Notice"
"""What everyone is told by the portal's administrator: `warning; Maintenance%20at%20noon`."""


class NewerThanPortal(UserWarning):
    """This client is newer than the portal: what it offers may not be there."""

    def __init__(self, url: str, portal: str) -> None:
        super().__init__(
            f"This client, {VERSION}, is newer than the portal, {portal}, which refuses what it does not know yet. "
            f"{url}/client/ has the client of the portal's version."
        )
        self.url, self.portal = url, portal


def newer_than(said: str) -> str | None:
    """The portal's version, where this client is newer; `said` is what the portal sent in `ANSWERED`."""
    portal = said.partition(";")[0].strip()
    numbers = _numbers(portal)
    return portal if numbers is not None and numbers < (_numbers(VERSION) or ()) else None


def _numbers(version: str) -> tuple[int, ...] | None:
    found = re.match(r"([0-9]{1,6})\.([0-9]{1,6})\.([0-9]{1,6})", version)
    return None if found is None else tuple(map(int, found.groups()))
