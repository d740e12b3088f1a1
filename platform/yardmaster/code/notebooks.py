"""A notebook before a launch: its cells as one Python source that is checked like a script, and what is wrong with the
notebook itself. Findings name the cell, and the line within it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from yardmaster.code.findings import Finding, Severity, warn
from yardmaster.code.script_facts import Facts, Location
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_limits import shorten
from yardmaster_runner.entry_point import is_notebook
from yardmaster_runner.in_script import notebook_cells as cells

LARGEST = cells.LARGEST


@dataclass(frozen=True)
class NotebookSource:
    """The Python of all cells, and the line at which each begins (from 1)."""

    path: str
    text: str
    starts: tuple[int, ...]

    def placed(self, finding: Finding) -> Finding:
        """The finding, at its cell where it is in this notebook."""
        if finding.file != self.path or not finding.line:
            return finding
        number = bisect_right(self.starts, finding.line)
        return replace(finding, file=f"{self.path}, cell {number}", line=finding.line - self.starts[number - 1] + 1)


def notebook_source(path: str, text: str) -> NotebookSource | Finding:
    """The notebook's source, or what is wrong with it."""
    try:
        notebook = cells.read(text)
    except cells.NotANotebook as error:
        return unusable(path, error)
    found, starts, line = [], [], 1
    for cell in cells.code_cells(notebook):
        source = cells.as_python(cells.source_of(cell))
        starts.append(line)
        line += source.count("\n") + 1
        found.append(source)
    return NotebookSource(path, "\n".join(found), tuple(starts))


def unusable(path: str, error: cells.NotANotebook) -> Finding:
    """What a notebook that cannot be run is, as a finding."""
    return Finding(Severity.ERROR, error.code, f"{shorten(path)}: {error.message}", error.remedy, path)


def too_large(path: str, size: int) -> Finding:
    """The same of one that is not even read."""
    return unusable(path, cells.too_large(size))


def notebook_magics(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """Magics that a task does not have, and packages that are installed at every start."""
    if not is_notebook(spec.entry_point):
        return
    seen: set[str] = set()
    for call in facts.calls:
        name = next(iter(call.texts()), "")
        if call.method not in ("run_line_magic", "run_cell_magic", "system") or name in seen:
            continue
        seen.add(name)
        installs = name == "pip" or (call.method == "system" and name.startswith(("pip ", "pip3 ")))
        if installs and "install" in " ".join(call.texts()):
            yield _installs(call.place)
        elif call.method != "system" and name not in cells.MAGICS:
            sign = "%" if call.method == "run_line_magic" else "%%"
            message = f"{sign}{shorten(name)} is not available in a task: the cell would fail."
            yield warn("magic_unknown", message, "Remove it, or write in Python what it does.", call.place)


def _installs(place: Location) -> Finding:
    message = "The notebook installs packages: each task does so at each start, and needs a way to the package index."
    return warn("installs_packages", message, "Have them in the task environment, and remove the line.", place)
