"""What passes on the WebSocket of a terminal, between whom who types and the shell in a task. Pure.

Binary messages are the terminal's bytes. Text messages are JSON objects: `{"rows", "columns"}` is the terminal's size;
`{"read": N}` says that N of what the other side sent is read; `{"ended": why, "exit_code": N or null}` comes last.

A side sends a message only while what the other has not read of it is below `WINDOW`. So no one between them ever holds
more than that, however much a program prints, and no one has to stop reading. Each message counts as its bytes, and
as `LEAST` at least; sizes of the terminal count, what says how much was read does not.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Union

WINDOW = 128 << 10
LEAST = 1 << 10
LONGEST_MESSAGE = 16 << 10
LARGEST_SIDE = 1000
"""Rows or columns of a terminal."""

Content = Union[bytes, str]


def cost(content: Content) -> int:
    """What a message of bytes or a size counts as, until it is read."""
    return max(LEAST, len(content))


def read_json(text: str) -> Dict[str, Any]:
    """What a text message says; empty where it is none of the protocol."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def is_size(value: Dict[str, Any]) -> bool:
    """Whether it is a terminal's size."""
    sides = (value.get("rows"), value.get("columns"))
    return set(value) == {"rows", "columns"} and all(type(one) is int and 0 < one <= LARGEST_SIDE for one in sides)


def amount_read(value: Dict[str, Any]) -> int:
    """How much the other side has read; 0 where it does not say that."""
    amount = value.get("read")
    return amount if type(amount) is int and 0 < amount <= WINDOW + LONGEST_MESSAGE else 0
