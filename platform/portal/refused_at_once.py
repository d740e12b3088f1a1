"""Refusals that the server writes itself, as bytes, before there is a request for the application: of callers who are
surely no one, as far as memory knows, and whose request has no body.

Such a request costs a tenth of one that passes through ASGI, so a thousand of them a second leave the process to those
who are let in. The answer is the same, and counts the same. Whatever is not plain takes the usual way. Not here: who is
refused (`early_refusals`), and how often one may be (`rate_limit`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from apps.api.problems import CONTENT_TYPE, ApiProblem, body_at, is_of_serving
from portal.callers import Caller, caller_at_once
from portal.rate_limit import counted_here, has_no_body, refused_demand_of
from portal.refusals import SAFE, encoded

Headers = list[tuple[bytes, bytes]]
log = logging.getLogger(__name__)

_NOT_PLAIN = (b"hx-request", b"expect", b"upgrade")
"""Headers that ask for another answer, or for more than one."""


def refused_at_once(scope: MutableMapping[str, Any], target: bytes, defaults: Headers) -> bytes | None:
    """The whole answer to a request whose head has been read, or None where the application shall answer. Never raises.

    `scope`: that of ASGI, with its `method` but without a path; who is known is noted in it. `target`: what was asked
    for, as it was sent. `defaults`: the headers that the server adds to every answer. The connection can be kept.
    """
    raw, _, _ = target.partition(b"?")
    if not raw.startswith(b"/api/") or b"%" in raw or scope["method"] == "HEAD" or not _is_plain(scope):
        return None
    scope["path"] = path = raw.decode("latin-1")
    try:
        caller = caller_at_once(scope)
        return None if caller is None else _refusal(path, caller, defaults)
    except Exception:  # the server would take it for a fault of the request
        log.exception("A request could not be refused at once")
        return None


def _refusal(path: str, caller: Caller, defaults: Headers) -> bytes | None:
    demand = refused_demand_of("http", path, caller)
    if demand is None or demand.refusal is None:
        return None
    try:
        headers, problem = counted_here(demand), demand.refusal
    except ApiProblem as error:
        headers, problem = {}, error
    return _answer(path, problem, headers, defaults)


def _is_plain(scope: Mapping[str, Any]) -> bool:
    return has_no_body(scope) and not any(name in _NOT_PLAIN for name, _ in scope["headers"])


def _answer(path: str, problem: ApiProblem, headers: Mapping[str, str], defaults: Headers) -> bytes:
    body = _body(path if is_of_serving(path) else "", problem)
    own = {"Content-Length": str(len(body)), **problem.headers, **headers}
    lines = "".join([f"{name.lower()}: {value}\r\n" for name, value in own.items()]).encode("latin-1")
    return b"".join([_beginning(problem.status), *(b"%b: %b\r\n" % one for one in defaults), lines, b"\r\n", body])


@lru_cache(maxsize=200)
def _body(path: str, problem: ApiProblem) -> bytes:
    """Of a problem that is given again and again."""
    return json.dumps(body_at(path, problem)).encode()


@lru_cache
def _beginning(status: int) -> bytes:
    """The first line, and the headers that are always the same."""
    safe = b"".join(b"%b: %b\r\n" % one for one in encoded({"Content-Type": CONTENT_TYPE} | SAFE))
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode() + safe
