"""Scripts that are part of a package: Python runs them as modules only."""

from __future__ import annotations

from collections.abc import Iterator

from yardmaster.code.entry_files import module_name
from yardmaster.code.findings import Finding, Fix, warn
from yardmaster.code.script_facts import Facts
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_limits import shorten
from yardmaster_runner.entry_point import module_of


def as_module(path: str, facts: Facts) -> str:
    """The entry point that runs this script as the module that it is (`-m package.train`). Empty where it imports
    nothing with a leading dot, and where it lies in no folder that could be a package."""
    found = f"-m {module_name(path)}"
    return found if path in facts.relative and "/" in path and module_of(found) else ""


def relative_imports(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """A script of a package that is run as a file, which ends at its first import with a leading dot."""
    place = facts.relative.get(spec.entry_point)
    if place is None:
        return
    module = as_module(spec.entry_point, facts)
    fixes = (Fix(f"Run {shorten(module)}", "entry_point", module),) if module else ()
    message = "The script imports with a leading dot (from .x import y), which works only in a module of a package."
    remedy = f"Run it as a module: {shorten(module)}." if module else "Remove the dot."
    yield warn("relative_import", message, remedy, place, fixes)
