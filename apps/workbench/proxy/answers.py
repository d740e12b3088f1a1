"""What the proxy says itself: a page that needs nothing else, or JSON for programs. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from typing import Any

from apps.workbench.proxy.contract import Refusal

Headers = list[tuple[bytes, bytes]]

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem;"
    "color:#1f2937;background:#fff}"
    "h1{font-size:1.5rem;line-height:1.25}"
    "a{color:#0b57d0}"
    "@media(prefers-color-scheme:dark){body{color:#e5e7eb;background:#111827}a{color:#8ab4f8}}"
)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


_POLICY = (
    f"default-src 'none'; style-src '{_hash(_STYLE)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_SAFE: Headers = [
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", _POLICY.encode()),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


def wants_page(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a person waits for the answer, not a program."""
    if method not in ("GET", "HEAD"):
        return False
    return headers.get(b"sec-fetch-mode") == b"navigate" or b"text/html" in headers.get(b"accept", b"")


def answer(refusal: Refusal, as_page: bool) -> tuple[Headers, bytes]:
    """Headers and body."""
    kind = b"text/html; charset=utf-8" if as_page else b"application/json"
    return with_length(kind, _page(refusal).encode() if as_page else _json(refusal))


def with_length(kind: bytes, body: bytes) -> tuple[Headers, bytes]:
    """Headers and body of any answer of the proxy itself."""
    return [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *_SAFE], body


def entrance(place: str, preferences: Mapping[str, Mapping[str, Any]]) -> tuple[Headers, bytes]:
    """Headers and body of a page that puts preferences into the browser's local storage, where it has none of its own,
    and leads to `place`; without a script it only leads there."""
    wanted = json.dumps({"place": place, "preferences": preferences}).replace("<", "\\u003c")
    script = _PREFER % wanted
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Opening – Yardmaster</title>'
        f'<noscript><meta http-equiv="refresh" content="0;url={escape(place)}"></noscript></head>'
        f"<body><script>{script}</script></body></html>"
    )
    headers, body = with_length(b"text/html; charset=utf-8", page.encode())
    return [one for one in headers if one[0] != b"content-security-policy"] + [
        (b"content-security-policy", policy.encode())
    ], body


_PREFER = """
const { place, preferences } = %s;
try {
    for (const [key, wanted] of Object.entries(preferences)) {
        const found = JSON.parse(localStorage.getItem(key) ?? "{}");
        localStorage.setItem(key, JSON.stringify({ ...wanted, ...found }));
    }
} catch {} // a browser that keeps nothing, or something that is no JSON
location.replace(place);
"""


def _json(refusal: Refusal) -> bytes:
    names = ("code", "message", "remedy", "link", "link_text")
    return json.dumps({name: getattr(refusal, name) for name in names}).encode()


def _page(refusal: Refusal) -> str:
    remedy = f"<p>{escape(refusal.remedy)}</p>" if refusal.remedy else ""
    link = (
        f'<p><a href="{escape(refusal.link)}">{escape(refusal.link_text or refusal.link)}</a></p>'
        if refusal.link.startswith(("http://", "https://", "/"))
        else ""
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(refusal.title)} – Yardmaster</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{escape(refusal.title)}</h1><p>{escape(refusal.message)}</p>{remedy}{link}</main></body></html>"
    )
