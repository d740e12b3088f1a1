"""What passes of headers, from a browser to a session's program and back. Pure.

Programs run what users wrote, so nothing that is worth something elsewhere reaches them, and nothing that they answer
changes more than their own pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

Headers = list[tuple[bytes, bytes]]

_OF_ONE_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
     b"trailer", b"transfer-encoding", b"upgrade", b"http2-settings")
)  # fmt: skip
_NOT_TO_PROGRAMS = _OF_ONE_HOP | {b"authorization", b"forwarded", b"x-real-ip", b"expect", b"content-length", b"cookie"}
_NOT_TO_PROGRAMS_BEGIN = (b"x-forwarded-", b"x-yardmaster-", b"proxy-")
_OF_HANDSHAKES = (b"sec-websocket-",)
_NOT_TO_BROWSERS = _OF_ONE_HOP | {
    b"strict-transport-security", b"clear-site-data", b"alt-svc", b"server", b"x-content-type-options",
    b"referrer-policy", b"cross-origin-resource-policy", b"nel", b"report-to", b"reporting-endpoints", b"x-sendfile",
    b"x-lighttpd-send-file", b"x-litespeed-location",
}  # fmt: skip
_NOT_TO_BROWSERS_BEGIN = (b"access-control-", b"x-accel-")
"""Some of them are orders to reverse proxies before the portal, such as which of its files to send."""
_ADDED = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"frame-ancestors 'self'"),
]
"""A policy of the program itself stays: browsers keep to both."""
_OPENER = b"cross-origin-opener-policy"
_DOMAIN = re.compile(rb";\s*domain\s*(=[^;]*)?(?=;|$)", re.IGNORECASE)
_PATH = re.compile(rb";\s*path\s*=([^;]*)", re.IGNORECASE)
_OURS = b"yardmaster"
_KNOWN_NAMES = 256
"""Names of headers of which it is kept whether they pass."""
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
METHODS = (*SAFE_METHODS, "POST", "PUT", "PATCH", "DELETE")
"""That pass: CONNECT turns a connection into something else, and TRACE answers with what browsers hide."""


def to_program(headers: Iterable[tuple[bytes, bytes]], scheme: str, host: str) -> Headers:
    """Those of a request, without what says how long its body is (`framing`). `scheme` and `host`: of the session's
    origin."""
    headers = list(headers)
    named = _named_by_connection(headers)
    passed: Headers = []
    for name, value in headers:
        plain = _plain_to_program(name)
        if plain == b"cookie":
            if kept := _without_ours(value):
                passed.append((b"cookie", kept))
        elif plain is not None and plain not in named:
            passed.append((name, value))
    return [*passed, (b"x-forwarded-proto", scheme.encode()), (b"x-forwarded-host", host.encode())]


@lru_cache(_KNOWN_NAMES)
def _plain_to_program(name: bytes) -> bytes | None:
    """The name as a program may read it; None where the header never passes."""
    plain = name.lower().replace(b"_", b"-")  # WSGI does not tell them apart
    if plain == b"cookie":
        return plain
    return None if plain in _NOT_TO_PROGRAMS or plain.startswith(_NOT_TO_PROGRAMS_BEGIN) else plain


def framing(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """How long the body of a request is, as the server that parsed it understood it; nothing where there is none."""
    found = {name: value for name, value in headers if name in (b"content-length", b"transfer-encoding")}
    if b"transfer-encoding" in found:
        return [(b"transfer-encoding", b"chunked")]
    return [(b"content-length", found[b"content-length"])] if b"content-length" in found else []


def of_handshake(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """What passes of a WebSocket's request, without what belongs to the handshake itself."""
    return [(name, value) for name, value in headers if not name.startswith(_OF_HANDSHAKES) and name != b"host"]


def to_browser(headers: Iterable[tuple[bytes, bytes]], prefix: str) -> Headers:
    """Those of an answer."""
    headers = list(headers)
    named = _named_by_connection(headers)
    passed: Headers = []
    has_opener = False
    for name, value in headers:
        if name in named or not _passes_to_browser(name):
            continue
        if name == b"set-cookie":
            value = _below(_DOMAIN.sub(b"", value), prefix)
            if _OURS in value.partition(b";")[0].lower():
                continue
        if name == b"service-worker-allowed" and not value.startswith(prefix.encode()):
            continue
        passed.append((name, value))
        has_opener = has_opener or name == _OPENER
    if not has_opener:
        passed.append((_OPENER, b"same-origin-allow-popups"))
    return passed + _ADDED


@lru_cache(_KNOWN_NAMES)
def _passes_to_browser(name: bytes) -> bool:
    return name not in _NOT_TO_BROWSERS and not name.startswith(_NOT_TO_BROWSERS_BEGIN)


def _below(cookie: bytes, prefix: str) -> bytes:
    """A `Set-Cookie` whose path lies below the session's prefix: others on the same host do not get it."""
    paths = _PATH.findall(cookie)
    if len(paths) == 1 and paths[0].strip().startswith(prefix.encode()):
        return cookie
    return _PATH.sub(b"", cookie) + b"; Path=" + prefix.encode()


def is_foreign(method: str, headers: Mapping[bytes, bytes], origin: str) -> bool:
    """Whether a page of another origin sends the request: it may lead here (a navigation) and nothing else."""
    if method not in SAFE_METHODS:
        sent = headers.get(b"origin")
        if sent is not None and sent != origin.encode():
            return True
    if headers.get(b"sec-fetch-site") not in (b"cross-site", b"same-site"):
        return False
    return method not in SAFE_METHODS or headers.get(b"sec-fetch-mode") != b"navigate"


def _named_by_connection(headers: Headers) -> set[bytes]:
    found: set[bytes] = set()
    for name, value in headers:
        if name.lower() == b"connection":
            found.update(word.strip().lower() for word in value.split(b","))
    return found - {b"host", b"content-type"}


def _without_ours(cookies: bytes) -> bytes:
    """A header `Cookie` without the portal's own."""
    kept = (pair for pair in cookies.split(b";") if _OURS not in pair.partition(b"=")[0].lower())
    return b";".join(kept).strip()
