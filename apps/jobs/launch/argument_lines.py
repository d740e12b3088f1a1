"""Arguments as lines of the form: a line is split at its spaces as a shell would, quotes keep parts together.

Backslashes are left as they are, so that patterns and paths need no second one. A line without spaces is one argument
as it stands, but for quotes around all of it or around the value after its `=`. What begins and ends with double quotes
is read as JSON has it, so that any text at all can be written on one line.
"""

from __future__ import annotations

import json
import re
import shlex

from yardmaster.quantity import NotAQuantity

_QUOTED_VALUE = re.compile(r"""(?:[^'"=]*=)?(?:'[^']*'|"[^"]*")""")


def arguments_of(text: str) -> list[str]:
    """The arguments of all lines. Raises `NotAQuantity` where a quote has no partner."""
    return [one for line in text.replace("\r\n", "\n").split("\n") for one in _of_line(line.strip())]


def as_argument_line(argument: str) -> str:
    """The line that is this one argument."""
    if argument and not any(sign in argument for sign in "\r\n") and argument == argument.strip():
        try:
            if _of_line(argument) == [argument]:
                return argument
        except NotAQuantity:
            pass  # its quotes do not close: it is written as JSON
    return json.dumps(argument, ensure_ascii=False)


def _of_line(line: str) -> list[str]:
    if not line:
        return []
    if (whole := _of_json(line)) is not None:
        return [whole]
    if not any(map(str.isspace, line)) and not _QUOTED_VALUE.fullmatch(line):
        return [line]
    reader = shlex.shlex(line, posix=True)
    reader.whitespace_split, reader.commenters, reader.escape = True, "", ""
    try:
        return list(reader)
    except ValueError as error:
        message = "A quote in this line has no partner. Put the whole line between double quotes for one argument."
        raise NotAQuantity(message) from error


def _of_json(line: str) -> str | None:
    if len(line) < 2 or not (line.startswith('"') and line.endswith('"')):
        return None
    try:
        text = json.loads(line)
    except ValueError:
        return None
    return text if isinstance(text, str) else None
