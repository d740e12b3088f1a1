"""Signed addresses for a store that the portal serves itself: who has one may do that one thing, until it expires.

Not here: how the request is answered (`apps.uploads.delivery`), S3's own signatures.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote, urlencode

from yardmaster.storage.base import MAX_EXPIRY, AddressRefused


@dataclass(frozen=True)
class ReadGrant:
    """GET (and HEAD) of one object."""

    key: str
    filename: str
    content_type: str


@dataclass(frozen=True)
class PartGrant:
    """PUT of one part, of exactly `size` bytes with this SHA-256."""

    key: str
    upload_id: str
    part: int
    size: int
    sha256: str


class AddressBook:
    """Makes and reads signed addresses. All of an address is under its signature, the expiry too."""

    def __init__(self, secret: str, clock: Callable[[], float]) -> None:
        if len(secret) < 32:
            raise ValueError("the signing key is shorter than 32 characters")
        self._key = hashlib.sha256(b"yardmaster.storage.addresses\0" + secret.encode()).digest()
        self._clock = clock

    def read_address(self, grant: ReadGrant, expires: timedelta) -> str:
        """`/storage/objects/…?…`"""
        until = self._until(expires)
        signature = self._sign("GET", until, [grant.key, grant.filename, grant.content_type])
        query = {"filename": grant.filename, "type": grant.content_type, "expires": until, "signature": signature}
        return f"/storage/objects/{quote(grant.key)}?{urlencode({k: v for k, v in query.items() if v != ''})}"

    def part_address(self, grant: PartGrant, expires: timedelta) -> str:
        """`/storage/parts/…?…`"""
        until = self._until(expires)
        signature = self._sign("PUT", until, [grant.key, grant.upload_id, grant.part, grant.size, grant.sha256])
        query = {"key": grant.key, "size": grant.size, "sha256": grant.sha256, "expires": until, "signature": signature}
        return f"/storage/parts/{quote(grant.upload_id)}/{grant.part}?{urlencode(query)}"

    def read_grant(self, key: str, query: Mapping[str, str]) -> ReadGrant:
        """What this address allows. Raises `AddressRefused`."""
        grant = ReadGrant(key, query.get("filename", ""), query.get("type", ""))
        self._check("GET", query, [grant.key, grant.filename, grant.content_type])
        return grant

    def part_grant(self, upload_id: str, part: int, query: Mapping[str, str]) -> PartGrant:
        """What this address allows. Raises `AddressRefused`."""
        size, sha256 = _whole(query.get("size", "")), query.get("sha256", "")
        grant = PartGrant(query.get("key", ""), upload_id, part, size, sha256)
        self._check("PUT", query, [grant.key, grant.upload_id, grant.part, grant.size, grant.sha256])
        return grant

    def _until(self, expires: timedelta) -> int:
        if not timedelta() < expires <= MAX_EXPIRY:
            raise ValueError(f"an address lives more than 0 seconds and at most {MAX_EXPIRY}, not {expires}")
        return int(self._clock() + expires.total_seconds())

    def _sign(self, method: str, until: int, facts: list[str | int]) -> str:
        # JSON, so that no two lists of facts ever give the same text.
        text = json.dumps([method, until, *facts]).encode()
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()

    def _check(self, method: str, query: Mapping[str, str], facts: list[str | int]) -> None:
        until = _whole(query.get("expires", ""))
        wanted = self._sign(method, until, facts)
        if not hmac.compare_digest(wanted.encode(), query.get("signature", "").encode(errors="replace")):
            raise AddressRefused(
                "This address was not signed by this portal, or was changed.", remedy="Ask the portal for a new one."
            )
        if until <= self._clock():
            raise AddressRefused(
                "This address has expired.", code="address_expired", remedy="Ask the portal for a new one."
            )


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise AddressRefused("This address is not complete.", remedy="Ask the portal for a new one.")
    return int(text)
