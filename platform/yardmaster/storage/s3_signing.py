"""Signed S3 requests: AWS Signature Version 4 in the query, for others, with the headers that the sender must send; or
in the headers, for the portal's own.

`minio` presigns without headers, so that anyone who has such an address could send as much as they like; here the
length is part of the signature. The rules are those of the AWS documentation, "Authenticating Requests: Using Query
Parameters" and "Using the Authorization Header". Pure.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from urllib.parse import quote, urlsplit

from yardmaster.storage.base import MAX_EXPIRY

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Credentials:
    """Who signs, and for which region of the store."""

    access_key: str
    secret_key: str = field(repr=False)
    region: str


@dataclass(frozen=True)
class Call:
    """One request to a store. `query` and `headers` are signed as they are, and must be sent so."""

    method: str
    bucket: str
    key: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def presigned_url(endpoint: str, call: Call, credentials: Credentials, expires: timedelta, now: datetime) -> str:
    """The address at which `call` may be made without other credentials from `now` on, for `expires`.

    `endpoint` is the store as its sender sees it, `https://host[:port]`. Raises ValueError: an expiry of nothing, or of
    more than `MAX_EXPIRY`.
    """
    if not timedelta() < expires <= MAX_EXPIRY:
        raise ValueError(f"an address lives more than 0 seconds and at most {MAX_EXPIRY}, not {expires}")
    stamp = _stamp(now)
    headers = _signed_headers(endpoint, call.headers)
    query = _encoded(
        {
            **call.query,
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{credentials.access_key}/{_scope(stamp, credentials)}",
            "X-Amz-Date": stamp,
            "X-Amz-Expires": str(int(expires.total_seconds())),
            "X-Amz-SignedHeaders": ";".join(headers),
        }
    )
    signature = _signature(call, query, headers, "UNSIGNED-PAYLOAD", stamp, credentials)
    return f"{endpoint}{_path(call)}?{query}&X-Amz-Signature={signature}"


def signed_request(
    endpoint: str, call: Call, credentials: Credentials, body: bytes, now: datetime
) -> tuple[str, dict[str, str]]:
    """The address and the headers of a call that the portal makes itself, with this body. The headers sign it, so that
    the address may stand in a log and in an error: HTTP libraries write it there."""
    stamp, digest = _stamp(now), hashlib.sha256(body).hexdigest()
    own = {**call.headers, "x-amz-date": stamp, "x-amz-content-sha256": digest}
    headers, query = _signed_headers(endpoint, own), _encoded(call.query)
    signature = _signature(call, query, headers, digest, stamp, credentials)
    credential = f"{credentials.access_key}/{_scope(stamp, credentials)}"
    own["Authorization"] = (
        f"{_ALGORITHM} Credential={credential}, SignedHeaders={';'.join(headers)}, Signature={signature}"
    )
    return f"{endpoint}{_path(call)}" + (f"?{query}" if query else ""), own


def _signature(
    call: Call, query: str, headers: Mapping[str, str], content: str, stamp: str, credentials: Credentials
) -> str:
    """`headers` in the order of their names; `content` is the SHA-256 of the body, or says that it is not signed."""
    rows = [f"{name}:{value}" for name, value in headers.items()]
    request = "\n".join([call.method, _path(call), query, *rows, "", ";".join(headers), content])
    scope, digest = _scope(stamp, credentials), hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join([_ALGORITHM, stamp, scope, digest])
    return hmac.new(_key(credentials, stamp[:8]), text.encode(), hashlib.sha256).hexdigest()


def _stamp(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _scope(stamp: str, credentials: Credentials) -> str:
    return f"{stamp[:8]}/{credentials.region}/s3/aws4_request"


def _signed_headers(endpoint: str, headers: Mapping[str, str]) -> dict[str, str]:
    """All of them and the host, in the order of their names."""
    named = {"host": _host(endpoint)} | {name.lower(): value.strip() for name, value in headers.items()}
    return dict(sorted(named.items()))


def _path(call: Call) -> str:
    return f"/{_quoted(call.bucket)}/{_key_quoted(call.key)}" if call.key else f"/{_quoted(call.bucket)}"


@lru_cache(maxsize=64)
def _key(credentials: Credentials, day: str) -> bytes:
    """The same for all addresses of a day."""
    key = f"AWS4{credentials.secret_key}".encode()
    for word in (day, credentials.region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return key


def _encoded(query: Mapping[str, str]) -> str:
    return "&".join(f"{name}={value}" for name, value in sorted((_quoted(n), _quoted(v)) for n, v in query.items()))


@lru_cache(maxsize=256)
def _quoted(text: str) -> str:
    return quote(text, safe="~")


def _key_quoted(key: str) -> str:
    """Of the files of a folder, only the name is another."""
    folder, slash, name = key.rpartition("/")
    return _folder_quoted(folder) + slash + quote(name, safe="~")


@lru_cache(maxsize=64)
def _folder_quoted(folder: str) -> str:
    return quote(folder, safe="/~")


@lru_cache(maxsize=64)
def _host(endpoint: str) -> str:
    """As clients send it: without the port that the scheme has anyway."""
    parts = urlsplit(endpoint)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.netloc.rpartition(":")[0] if parts.port is not None and parts.port == usual else parts.netloc
