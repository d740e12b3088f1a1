"""What a notebook's cells are, and their source as Python: magics and shell lines become calls. Pure, and the portal's
rule as well: what it says of a notebook before a launch is what the task does with it.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any, Dict, List, Mapping, Tuple

LARGEST = 8 << 20
"""Bytes of a notebook."""
MOST_CELLS = 5_000
INJECTED = "injected-parameters"
PARAMETERS = "parameters"
_LINE = re.compile(r"^(\s*)(?:([A-Za-z_][\w, ]*?)\s*=\s*)?([!%])\s*(.*)$")
_HELP = re.compile(r"^\s*\?{0,2}[\w.]+\?{1,2}\s*$|^\s*\?{1,2}[\w.]+\s*$")
_NO_CODE = ("html", "javascript", "js", "svg", "latex", "markdown", "css")


PASSED_OVER = frozenset(
    {
        "matplotlib", "pylab", "load_ext", "reload_ext", "autoreload", "config", "precision", "xmode", "colors",
        "tensorboard", "tensorflow_version", "reset_selective", "who", "whos", "lsmagic", "history", "notebook",
    }
)  # fmt: skip
"""Magics of the notebook's own surface: they do nothing in a task."""
FILES = ("ls", "cat", "mkdir", "cp", "mv", "rm", "head", "tail")
"""Magics that are programs."""
MAGICS = PASSED_OVER | {*FILES, "pip", "time", "timeit", "prun", "cd", "pwd", "env", "set_env"}
MAGICS |= {"bash", "sh", "writefile", "file"}
"""All that a task has; the last ones are those of cells."""


class NotANotebook(Exception):
    """`code` names what is wrong, `remedy` says what to do."""

    def __init__(self, code: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.code, self.message, self.remedy = code, message, remedy


def read(text: str, largest: int = LARGEST) -> Dict[str, Any]:
    """The notebook that a file's text says, with its cells in order. Raises `NotANotebook`, and nothing else."""
    if len(text) > largest:
        raise too_large(len(text))
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        message = "It is no notebook: it is not JSON (%s)." % str(error)[:100]
        raise NotANotebook("bad_notebook", message, "Save it again in Jupyter.") from error
    if not isinstance(found, dict) or not isinstance(found.get("nbformat"), int):
        raise NotANotebook("bad_notebook", "It is no notebook: it has no nbformat.", "Save it again in Jupyter.")
    if found["nbformat"] != 4:
        message = "It is of notebook format %d, and tasks run format 4." % found["nbformat"]
        raise NotANotebook("old_notebook", message, "Convert it: jupyter nbconvert --to notebook --nbformat 4.")
    language = _language(found)
    if language != "python":
        message = "Its kernel is for %s, and tasks run Python." % language[:40]
        raise NotANotebook("other_kernel", message, "Choose a Python kernel, or run it with a command.")
    cells = found.get("cells")
    if not isinstance(cells, list) or len(cells) > MOST_CELLS or not all(map(_is_cell, cells)):
        message = "It is no notebook: its cells cannot be read, or are more than %d." % MOST_CELLS
        raise NotANotebook("bad_notebook", message, "Save it again in Jupyter.")
    return found


def too_large(size: int) -> NotANotebook:
    """What is wrong with a notebook of so many bytes."""
    message = "It has %d MiB, most likely of outputs; the most is %d MiB." % (size >> 20, LARGEST >> 20)
    return NotANotebook("notebook_too_large", message, "Clear all outputs and save it.")


def _language(notebook: Mapping[str, Any]) -> str:
    """Of its kernel, in small letters; one that does not say is Python's."""
    data = notebook.get("metadata")
    data = data if isinstance(data, dict) else {}
    for part, key in (("kernelspec", "language"), ("language_info", "name"), ("kernelspec", "name")):
        one = data.get(part)
        said = one.get(key) if isinstance(one, dict) else None
        if isinstance(said, str) and said:
            return "python" if said.lower().startswith(("python", "ipython")) else said.lower()
    return "python"


def _is_cell(cell: Any) -> bool:
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        return False
    source = cell.get("source", "")
    return isinstance(source, str) or (isinstance(source, list) and all(isinstance(one, str) for one in source))


def source_of(cell: Mapping[str, Any]) -> str:
    """Its text; notebooks have it whole or by lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def tags_of(cell: Mapping[str, Any]) -> List[str]:
    data = cell.get("metadata")
    tags = data.get("tags") if isinstance(data, dict) else None
    return [one for one in tags if isinstance(one, str)] if isinstance(tags, list) else []


def code_cells(notebook: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """Those that are run: with code in them."""
    return [one for one in notebook["cells"] if one["cell_type"] == "code" and source_of(one).strip()]


def with_parameters(notebook: Dict[str, Any], parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """The notebook with a cell that sets these variables: in the place of one that an earlier run injected, behind the
    one that is tagged `parameters`, or at the top."""
    if not parameters:
        return notebook
    source = "# Parameters\n" + "\n".join("%s = %r" % one for one in parameters.items())
    cell: Dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": [INJECTED]},
        "outputs": [],
        "source": source,
    }
    if notebook.get("nbformat_minor", 0) >= 5:
        cell["id"] = INJECTED
    cells = [one for one in notebook["cells"] if INJECTED not in tags_of(one)]
    after = [number for number, one in enumerate(cells, 1) if PARAMETERS in tags_of(one)]
    place = after[0] if after else 0
    return {**notebook, "cells": [*cells[:place], cell, *cells[place:]]}


def as_python(source: str) -> str:
    """The source as Python with as many lines: what only a notebook understands is a call of `get_ipython()`."""
    lines = source.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        name, _, rest = lines[first][2:].strip().partition(" ")
        if name in ("time", "timeit", "capture", "prun"):
            return "\n".join([*[""] * (first + 1), as_python("\n".join(lines[first + 1 :]))])
        if name in _NO_CODE:
            return "\n" * (len(lines) - 1)
        call = "get_ipython().run_cell_magic(%r, %r, %r)" % (name, rest.strip(), "\n".join(lines[first + 1 :]))
        return "\n" * first + call + "\n" * (len(lines) - first - 1)
    if _is_python(source):
        return source
    return "\n".join(_lines(lines))


def _is_python(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _lines(lines: List[str]) -> List[str]:
    found: List[str] = []
    number = 0
    while number < len(lines):
        match, line = _LINE.match(lines[number]), lines[number]
        if match is None:
            found.append("" if _HELP.match(line) else line)
            number += 1
            continue
        text, used = _continued(match.group(4), lines, number)
        call = _call(match.group(3), text, match.group(2))
        found += [match.group(1) + call, *[""] * (used - 1)]
        number += used
    return found


def _continued(text: str, lines: List[str], number: int) -> Tuple[str, int]:
    """A command that goes over several lines, each but the last with a backslash at its end; how many they are."""
    used = 1
    while text.endswith("\\") and number + used < len(lines):
        text = text[:-1] + " " + lines[number + used].strip()
        used += 1
    return text, used


def _call(sign: str, text: str, name: "str | None") -> str:
    before = "%s = " % name if name else ""
    if sign == "!":
        return "%sget_ipython().%s(%r)" % (before, "getoutput" if name else "system", text)
    magic, _, rest = text.partition(" ")
    return "%sget_ipython().run_line_magic(%r, %r)" % (before, magic, rest.strip())
