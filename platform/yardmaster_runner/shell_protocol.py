"""What passes on the WebSocket of a terminal, between whom who types and the shell in a task. Pure.

Binary messages are the terminal's bytes. Text messages are JSON objects: `{"rows", "columns"}` is the terminal's size;
`{"read": N}` says that N of what the other side sent is read; `{"ended": why, "exit_code": N or null}` comes last.

Where one command runs instead, without a terminal, the user sends first `{"command": [its arguments]}`, and with
`{"input": null}` the end of its input; each binary message of the task begins with `STDOUT` or `STDERR`.

A side sends a message only while what the other has not read of it is below `WINDOW`. So no one between them ever holds
more than that, however much a program prints, and no one has to stop reading. Each message counts as its bytes, and
as `LEAST` at least; sizes of the terminal count, what says how much was read does not.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Union

WINDOW = 128 << 10
LEAST = 1 << 10
LONGEST_MESSAGE = 16 << 10
STDOUT, STDERR = b"\x01", b"\x02"
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


def command_in(value: Dict[str, Any]) -> List[str]:
    """The command that it says; empty where it says none."""
    command = value.get("command")
    if set(value) != {"command"} or not isinstance(command, list) or not command:
        return []
    is_sound = all(isinstance(one, str) and "\0" not in one for one in command) and bool(command[0])
    return command if is_sound else []


def ends_input(value: Dict[str, Any]) -> bool:
    """Whether it says that the input of the command ends."""
    return set(value) == {"input"} and value["input"] is None


def amount_read(value: Dict[str, Any]) -> int:
    """How much the other side has read; 0 where it does not say that."""
    amount = value.get("read")
    return amount if type(amount) is int and 0 < amount <= WINDOW + LONGEST_MESSAGE else 0
