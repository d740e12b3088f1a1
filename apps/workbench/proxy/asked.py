"""Which request an ingress asks about, in the headers that ingresses send: those of nginx (`auth_request` with
`X-Original-URL` and `X-Original-Method`) or of Traefik, Caddy and Envoy (`X-Forwarded-Host`, `-Uri`, `-Method`). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Asked:
    """The request that is to be passed on. What was not said is empty, and names no session."""

    method: str
    host: str
    path: str


def asked_by(headers: Mapping[bytes, bytes]) -> Asked:
    """What the headers say; of both kinds, nginx's."""

    def said(name: bytes) -> str:
        return headers.get(name, b"").decode("latin-1")

    if original := said(b"x-original-url"):
        try:
            url = urlsplit(original)
        except ValueError:
            return Asked("", "", "")
        return Asked(said(b"x-original-method") or "GET", url.netloc, url.path)
    path = said(b"x-forwarded-uri").partition("?")[0]
    return Asked(said(b"x-forwarded-method") or "GET", said(b"x-forwarded-host"), path)
