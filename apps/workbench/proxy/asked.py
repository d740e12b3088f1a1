"""Which request an ingress asks about, in the headers that ingresses send: those of nginx (`auth_request` with
`X-Original-URL` and `X-Original-Method`) or of Traefik, Caddy and Envoy (`X-Forwarded-Host`, `-Uri`, `-Method`). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class Asked:
    """The request that is to be passed on. What was not said is empty, and names no session."""

    method: str
    host: str
    path: str
    query: str = ""
    only_yes_or_no: bool = False
    """Who asks understands 2xx, 401 and 403 alone: nginx makes a 500 of every other answer."""

    @property
    def scope(self) -> dict[str, Any]:
        """The request as ASGI has it, without its headers."""
        raw = self.path.encode("latin-1")
        query = self.query.encode("latin-1")
        return {"method": self.method, "path": unquote(self.path), "raw_path": raw, "query_string": query}


def asked_by(headers: Mapping[bytes, bytes]) -> Asked:
    """What the headers say; of both kinds, nginx's."""

    def said(name: bytes) -> str:
        return headers.get(name, b"").decode("latin-1")

    if original := said(b"x-original-url"):
        try:
            url = urlsplit(original)
        except ValueError:
            return Asked("", "", "", only_yes_or_no=True)
        return Asked(said(b"x-original-method") or "GET", url.netloc, url.path, url.query, only_yes_or_no=True)
    path, _, query = said(b"x-forwarded-uri").partition("?")
    return Asked(said(b"x-forwarded-method") or "GET", said(b"x-forwarded-host"), path, query)
