"""What people see of something that takes long: in a notebook an output that changes, elsewhere lines of text.

All that the portal says was written by others, so it stands in HTML as text alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yardmaster_client.models import Job
    from yardmaster_client.uploads import Progress

_REDRAW_EVERY = 0.25
_COLOURS = {"SUCCEEDED": "#2f9e44", "FAILED": "#d63939", "RUNNING": "#206bc4", "STARTING": "#17a2b8"}
_LOG = "margin:.4em 0 0;max-height:12em;overflow:auto;font-size:.85em;white-space:pre-wrap"


class Output:
    """One place where something is shown, and later something else in its place."""

    def __init__(self) -> None:
        self._handle: object = None
        self._said = ""

    def show(self, html: str, text: str) -> None:
        """`html` in a notebook. Elsewhere `text` is printed, if it is not what was printed last."""
        if is_notebook():
            from IPython.display import display  # only there in a notebook

            both = {"text/html": html, "text/plain": text}
            if self._handle is None:
                self._handle = display(both, raw=True, display_id=True)
            else:
                self._handle.update(both, raw=True)  # type: ignore[attr-defined]
        elif text != self._said:
            sys.stdout.write(text + "\n")
            self._said = text


def is_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def progress(what: str) -> Progress:
    """For a download or an upload: a bar in a notebook, nothing elsewhere."""
    if not is_notebook():
        return lambda done, total: None
    output, drawn = Output(), 0.0

    def show(done: int, total: int) -> None:
        nonlocal drawn
        if done >= total or time.monotonic() - drawn > _REDRAW_EVERY:
            drawn = time.monotonic()
            words = f"{what}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB"
            output.show(f"<div>{bar(done, total)} {escape(words)}</div>", words)

    return show


def bar(done: float, total: float | None) -> str:
    """A bar; one that only says that something happens where the total is not known."""
    known = f'max="{float(total)}" value="{float(done)}"' if total else ""
    return f'<progress style="width:16em;vertical-align:middle" {known}></progress>'


def page_of(job_id: str, url: str = "") -> str:
    """The job's page as a browser reaches it, which may have another address for the portal than this program; empty
    where none is known."""
    portal = os.environ.get("YARDMASTER_PUBLIC_URL") or url or os.environ.get("YARDMASTER_URL") or ""
    return f"{portal.rstrip('/')}/jobs/{job_id}/" if portal.startswith(("http://", "https://")) else ""


def job_as_html(job: Job, lines: Sequence[str] = (), url: str = "") -> str:
    """Name, phase and progress of a job, why it is so, and the last lines of its log."""
    name, page = escape(job.name), page_of(job.id, url)
    if page:
        name = f'<a href="{escape(page)}" target="_blank" rel="noopener">{name}</a>'
    colour = _COLOURS.get(job.phase, "#667382")
    known = job.progress or {}
    drawn = "" if job.is_final else bar(known.get("step", 0), known.get("total"))
    parts = [f'<b>{name}</b> <b style="color:{colour}">{escape(job.phase)}</b>', drawn, escape(steps_of(job))]
    why = " ".join(one for one in (job.message, job.remedy) if one)
    log = "\n".join(map(escape, lines))
    return "".join(
        [
            f"<div>{' '.join(part for part in parts if part)}</div>",
            f"<div>{escape(why)}</div>" if why else "",
            f'<pre style="{_LOG}">{log}</pre>' if lines else "",
        ]
    )


def job_as_text(job: Job) -> str:
    """The same as a line, without the log."""
    why = " ".join(one for one in (job.message, job.remedy) if one)
    return " ".join(part for part in (job.name, job.phase, steps_of(job), why) if part)


def steps_of(job: Job) -> str:
    """How far it has come, in words; empty where that is not known."""
    known = job.progress or {}
    total = f" of {known['total']:.0f}" if known.get("total") else ""
    words = [f"{known.get('unit') or 'step'} {known['step']:.0f}{total}"] if known.get("step") else []
    return ", ".join([*words, f"epoch {known['epoch']:.0f}"] if known.get("epoch") else words)
