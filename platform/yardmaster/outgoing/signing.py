"""The signature of a message: HMAC-SHA256 of its time and body, once for each secret that is valid. Pure."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence

PREFIX = "whsec_"


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def signature(keys: Sequence[str], timestamp: str, body: bytes) -> str:
    """`v1=<hex>`; with two keys `v1=<hex>,v1=<hex>`, the present one first."""
    signed = timestamp.encode() + b"." + body
    return ",".join(f"v1={hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()}" for key in keys)
