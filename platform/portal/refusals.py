"""Answers that are given before Django sees a request: JSON below `/api/`, words for a part of a page, else a page."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.http import HttpResponse
from django.template.loader import render_to_string

from apps.api.problems import CONTENT_TYPE, ApiProblem, answer_to, body_at
from apps.errors import DomainError
from portal.content_policy import FEATURES, POLICY

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

SAFE = {
    "Content-Security-Policy": POLICY,
    "Permissions-Policy": FEATURES,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
TRY_LATER = 1013
"""The code a WebSocket is closed with, where the server cannot answer with a status."""


async def refuse(
    scope: Any, send: Send, error: ApiProblem | DomainError, *, headers: Mapping[str, str] | None = None,
    keeps: bool = False,
) -> None:  # fmt: skip
    """Answer a request, or a WebSocket that is being opened, with a problem, and end the connection unless it `keeps`.
    `headers` come beside those of the problem."""
    prefix = ""
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": TRY_LATER})
            return
        prefix = "websocket."
    problem = answer_to(error)
    kind, body = _content(scope, problem)
    own = {"Content-Type": kind, "Content-Length": str(len(body))} | ({} if keeps else {"Connection": "close"})
    headers_sent = encoded(own | SAFE | problem.headers | dict(headers or {}))
    await send({"type": f"{prefix}http.response.start", "status": problem.status, "headers": headers_sent})
    await send({"type": f"{prefix}http.response.body", "body": body})


def refusal(scope: Any, error: ApiProblem | DomainError) -> HttpResponse:
    """The same, where Django has the request already."""
    problem = answer_to(error)
    kind, body = _content(scope, problem)
    return HttpResponse(body, content_type=kind, status=problem.status, headers=SAFE | problem.headers)


def encoded(headers: dict[str, str]) -> Headers:
    """Headers as ASGI has them."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def _content(scope: Any, problem: ApiProblem) -> tuple[str, bytes]:
    names = dict(scope["headers"])
    if b"hx-request" in names:
        return "text/plain; charset=utf-8", f"{problem.detail} {problem.remedy}".strip().encode()
    if scope["path"].startswith(("/api/", "/storage/")) or b"text/html" not in names.get(b"accept", b""):
        return CONTENT_TYPE, json.dumps(body_at(scope["path"], problem)).encode()
    # Without a request: what its context needs may cost more than the answer may.
    return "text/html; charset=utf-8", render_to_string("problem.html", {"problem": problem}).encode()
