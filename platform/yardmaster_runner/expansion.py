"""Variables in a job's arguments and in the values of its variables: `$NAME`, `${NAME}` and `$(NAME)`. Pure.

No shell: what is none of the known variables stays as it is written, and `$$` is a dollar. What was put in is not read
again. The values of a job's variables may name each other, in any order; where they name each other in a circle, those
names stay as they are written.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, Mapping, Set

from yardmaster_runner.exits import STAGE_IN_FAILED, CannotRun

LONGEST = 120 << 10
"""Characters of one argument or variable. Linux takes no more than 128 KiB."""
MOST = 1 << 20
"""Characters of all of them together. Linux takes about 2 MiB."""
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE = re.compile(r"\$(?:(\$)|(%s)|\{(%s)\}|\((%s)\))" % (_NAME, _NAME, _NAME))


def expanded(text: str, known: Mapping[str, str]) -> str:
    """The text with these variables put in. `CannotRun` where it becomes too long."""
    parts: List[str] = []
    size = end = 0
    for found in _VARIABLE.finditer(text):
        put_in = "$" if found.group(1) else known.get(_name_in(found), found.group(0))
        parts += [text[end : found.start()], put_in]
        end = found.end()
        size += len(parts[-1]) + len(parts[-2])
        if size > LONGEST:
            raise _too_long(text, LONGEST)
    return "".join([*parts, text[end:]])


def expanded_all(texts: Iterable[str], known: Mapping[str, str]) -> List[str]:
    """Each of the texts with these variables put in. `CannotRun` where they become too long."""
    result: List[str] = []
    size = 0
    for text in texts:
        result.append(expanded(text, known))
        size += len(result[-1])
        if size > MOST:
            raise _too_long(text, MOST)
    return result


def expanded_values(values: Mapping[str, str], known: Mapping[str, str]) -> Dict[str, str]:
    """The values with the known variables and each other put in; what is known counts before a value of its name.
    `CannotRun` where they become too long."""
    done: Dict[str, str] = {}
    waiting = {name: _named_in(text) & (set(values) - set(known)) for name, text in values.items()}
    while waiting:
        ready = [name for name, needed in waiting.items() if needed <= set(done)] or list(waiting)
        made = dict(zip(ready, expanded_all([values[name] for name in ready], {**done, **known})))
        done.update(made)
        for name in ready:
            del waiting[name]
        if sum(map(len, done.values())) > MOST:
            raise _too_long(max(done.values(), key=len), MOST)
    return {name: done[name] for name in values}


def _named_in(text: str) -> Set[str]:
    return {_name_in(found) for found in _VARIABLE.finditer(text)}


def _name_in(found: "re.Match[str]") -> str:
    return found.group(2) or found.group(3) or found.group(4) or ""


def _too_long(text: str, most: int) -> CannotRun:
    message = "with its variables put in, %r has, or makes, more than %d characters" % (text[:60], most)
    return CannotRun(STAGE_IN_FAILED, "StageInFailed", message)
