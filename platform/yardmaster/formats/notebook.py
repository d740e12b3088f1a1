"""An executed notebook as it may be shown on a page: its cells with texts and PNG pictures, and nothing that a browser
would run. HTML, JavaScript, SVG and widgets are named, never passed on.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yardmaster_runner.in_script import notebook_cells as cells

LARGEST = 32 << 20
"""Bytes of an executed notebook, outputs included."""
MOST_CELLS = 500
MOST_OUTPUTS = 50
"""Of one cell."""
MOST_TEXT = 20_000
"""Characters of one source or text."""
MOST_PICTURE = 2 << 20
MOST_SHOWN = 8 << 20
"""Characters of everything together."""
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_REDRAWN = re.compile(r"[^\n]*\r(?=[^\r\n])")
_PNG = b"\x89PNG\r\n\x1a\n"


def read_shown(path: str) -> dict[str, Any]:
    """What to show of the notebook in this file: `cells` and how many are `left_out`; or `problem` and `remedy`. Each
    cell has its `kind` (`code`, `text`), `number`, `source`, `tags` and `outputs`; an output its `kind` (`text`,
    `error`, `picture`, `note`) and its `text`, which of a picture is base64."""
    text = Path(path).read_bytes().decode("utf-8-sig", "replace")
    try:
        notebook = cells.read(text, LARGEST)
    except cells.NotANotebook as error:
        return {"problem": error.message, "remedy": error.remedy}
    left, shown = MOST_SHOWN, []
    for cell in notebook["cells"][:MOST_CELLS]:
        one = _cell(cell)
        left -= len(one["source"]) + sum(len(output["text"]) for output in one["outputs"])
        if left < 0:
            break
        shown.append(one)
    return {"cells": shown, "left_out": len(notebook["cells"]) - len(shown)}


def _cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    is_code = cell["cell_type"] == "code"
    count, outputs = cell.get("execution_count"), cell.get("outputs")
    found = [_output(one) for one in outputs[:MOST_OUTPUTS]] if is_code and isinstance(outputs, list) else []
    if found and len(outputs) > MOST_OUTPUTS:  # type: ignore[arg-type]
        found.append(_note("More outputs are in the file."))
    return {
        "kind": "code" if is_code else "text",
        "number": count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 10**6 else None,
        "source": _cut(cells.source_of(cell)),
        "tags": [one[:40] for one in cells.tags_of(cell)[:5]],
        "outputs": found,
    }


def _output(one: Any) -> dict[str, str]:
    if not isinstance(one, dict):
        return _note("An output that cannot be read.")
    if one.get("output_type") == "stream":
        return {"kind": "text", "text": _plain(one.get("text"))}
    if one.get("output_type") == "error":
        trace = one.get("traceback")
        lines = [line for line in trace if isinstance(line, str)] if isinstance(trace, list) else []
        return {"kind": "error", "text": _plain("\n".join(lines) or f"{one.get('ename')}: {one.get('evalue')}")}
    data = one.get("data")
    return _value(data if isinstance(data, dict) else {})


def _value(data: Mapping[str, Any]) -> dict[str, str]:
    """The picture where there is one, else the text."""
    if "image/png" in data:
        picture = _png(_joined(data["image/png"]))
        return {"kind": "picture", "text": picture} if picture else _note("A picture that cannot be shown.")
    if text := _joined(data.get("text/plain")):
        return {"kind": "text", "text": _plain(text)}
    kinds = ", ".join(sorted(str(kind)[:40] for kind in data)[:5]) or "no known type"
    return _note(f"An output of {kinds}, which is not shown here. Download the notebook to see it.")


def _png(text: str) -> str:
    """The base64 of a PNG, encoded again; empty where it is none, or too large."""
    if len(text) > MOST_PICTURE:
        return ""
    try:
        picture = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return base64.b64encode(picture).decode() if picture.startswith(_PNG) else ""


def _note(text: str) -> dict[str, str]:
    return {"kind": "note", "text": text}


def _joined(value: Any) -> str:
    """Notebooks have texts whole or by lines."""
    if isinstance(value, list):
        value = "".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _plain(value: Any) -> str:
    return _cut(_REDRAWN.sub("", _ANSI.sub("", _joined(value)[: 4 * MOST_TEXT])))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\n… The rest is in the file."
