"""What the cells of a notebook print and show: passed on to the log as it comes, and kept as the notebook's outputs."""

from __future__ import annotations

import base64
import io
import re
import sys
import threading
import traceback
from typing import Any, Dict, List, Optional

MOST_TEXT = 1 << 18
"""Characters that are kept of what one cell prints into a stream, and of one text that is shown."""
MOST_KEPT = 12 << 20
"""Characters of all outputs together."""
CUT = "\n[The rest is in the log: outputs are kept up to a limit.]\n"
_REDRAWN = re.compile(r"[^\n]*\r(?=[^\r\n])")


class Outputs:
    """The outputs of the cell that runs now; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._cell: Optional[Dict[str, Any]] = None
        self._kept = 0
        self.changed = threading.Event()

    def begin(self, cell: Dict[str, Any]) -> None:
        """What comes from now on belongs to this cell."""
        with self._lock:
            cell["outputs"] = []
            self._cell = cell
            self.changed.set()

    def written(self, name: str, text: str) -> None:
        """A piece of the stream `stdout` or `stderr`."""
        with self._lock:
            outputs = self._outputs()
            if not outputs or outputs[-1].get("name") != name:
                outputs.append({"output_type": "stream", "name": name, "text": ""})
            last = outputs[-1]
            if last["text"].endswith(CUT):
                return
            whole = last["text"] + text
            if "\r" in text or len(whole) > MOST_TEXT:
                whole = _REDRAWN.sub("", whole)
            if len(whole) > MOST_TEXT or self._kept > MOST_KEPT:
                whole = whole[:MOST_TEXT] + CUT
            self._kept += len(whole) - len(last["text"])
            last["text"] = whole
            self.changed.set()

    def show(self, data: Dict[str, str], count: Optional[int] = None) -> None:
        """A value, by its types; with `count` it is the cell's result."""
        with self._lock:
            size = sum(map(len, data.values()))
            if self._kept + size > MOST_KEPT:
                data, size = {"text/plain": CUT.strip()}, 0
            self._kept += size
            one: Dict[str, Any] = {"output_type": "display_data", "data": data, "metadata": {}}
            if count is not None:
                one.update(output_type="execute_result", execution_count=count)
            self._outputs().append(one)
            self.changed.set()

    def failed(self, error: BaseException, lines: List[str]) -> None:
        with self._lock:
            text = [line[:MOST_TEXT] for line in "".join(lines).split("\n")[-200:]]
            found = {"ename": type(error).__name__, "evalue": str(error)[:MOST_TEXT], "traceback": text}
            self._outputs().append({"output_type": "error", **found})
            self.changed.set()

    def clear(self) -> None:
        with self._lock:
            self._outputs().clear()
            self.changed.set()

    def locked(self) -> "threading.RLock":
        """While it is held nothing is added."""
        return self._lock

    def _outputs(self) -> List[Dict[str, Any]]:
        return [] if self._cell is None else self._cell["outputs"]


class Stream(io.TextIOBase):
    """In the place of `sys.stdout` or `sys.stderr`."""

    def __init__(self, name: str, real: Any, outputs: Outputs) -> None:
        self._name, self._real, self._outputs = name, real, outputs

    def write(self, text: str) -> int:
        self._real.write(text)
        self._outputs.written(self._name, text)
        return len(text)

    def flush(self) -> None:
        self._real.flush()

    def fileno(self) -> int:
        return int(self._real.fileno())

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return str(self._real.encoding)

    @property
    def buffer(self) -> Any:
        return self._real.buffer


def data_of(value: Any) -> Dict[str, str]:
    """The value by types, as far as it says them itself: always a text, perhaps a picture or HTML."""
    data = getattr(value, "_notebook_data", None)
    if isinstance(data, dict):
        return data
    found = {"text/plain": _bounded(_text_of(value))}
    for method, kind in (("_repr_html_", "text/html"), ("_repr_markdown_", "text/markdown")):
        text = _asked(value, method)
        if isinstance(text, str) and len(text) <= MOST_TEXT:
            found[kind] = text
    picture = _asked(value, "_repr_png_")
    if isinstance(picture, bytes):
        found["image/png"] = base64.b64encode(picture).decode()
    return found


def _text_of(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 (code of the user's)
        return "<%s whose repr fails>\n%s" % (type(value).__name__, traceback.format_exc(limit=1))


def _asked(value: Any, method: str) -> Any:
    """What the value says; nothing where it cannot. A class has the method of its instances."""
    if isinstance(value, type) or not hasattr(type(value), method):
        return None
    try:
        return getattr(value, method)()
    except Exception:  # noqa: BLE001 (code of the user's)
        return None


def _bounded(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + CUT


def figures() -> List[bytes]:
    """The figures that matplotlib has open, as PNG; they are closed. Nothing where it was not imported."""
    plot = sys.modules.get("matplotlib.pyplot")
    found = []
    for number in plot.get_fignums() if plot is not None else ():
        buffer = io.BytesIO()
        plot.figure(number).savefig(buffer, format="png", bbox_inches="tight")  # type: ignore[union-attr]
        found.append(buffer.getvalue())
    if plot is not None and found:
        plot.close("all")
    return found
