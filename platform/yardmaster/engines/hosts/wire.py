"""How the portal and an agent speak: one JSON object a line, over the pipes of one SSH session.

A request is `{"id", "verb", …}`, its answer `{"id", "result"}` or `{"id", "error": {"kind", "message", "remedy"}}`.
Lines without an id are news: `{"changed": [key, …]}`. Answers come in any order. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from yardmaster.errors import Misconfigured, QuotaFull, SpecUnreadable, Unavailable, YardmasterError
from yardmaster.storable import storable

LONGEST_LINE = 8 << 20
"""Of a line, in bytes: what a machine sends is not believed to end."""
LONGEST_WORDS = 2_000
"""Characters of what a machine says in place of an answer: jobs and pages show it."""
_KINDS: Mapping[str, type[YardmasterError]] = {
    "unavailable": Unavailable,
    "misconfigured": Misconfigured,
    "full": QuotaFull,
    "unreadable": SpecUnreadable,
}


def line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def message_in(data: bytes) -> dict[str, Any]:
    """Raises `ValueError` where the line is no message."""
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def cut(words: str) -> str:
    """What is kept of such words."""
    return storable(words[:LONGEST_WORDS])


def error_to_json(error: YardmasterError) -> dict[str, str]:
    kind = next((kind for kind, known in _KINDS.items() if isinstance(error, known)), "unavailable")
    return {"kind": kind, "message": error.message, "remedy": error.remedy}


def error_in(found: Mapping[str, Any], machine: str) -> YardmasterError:
    """The error that an agent answered, told of its machine."""
    kind = _KINDS.get(str(found.get("kind")), Unavailable)
    message, remedy = (cut(str(found.get(one, ""))) for one in ("message", "remedy"))
    return kind(f"{machine}: {message}", remedy=remedy)
