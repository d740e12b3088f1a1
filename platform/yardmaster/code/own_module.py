"""Scripts that are part of a package: Python runs them as modules only."""

from __future__ import annotations

from collections.abc import Iterator

from yardmaster.code.entry_files import module_name
from yardmaster.code.findings import Finding, Fix, warn
from yardmaster.code.script_facts import Facts
from yardmaster.job.spec import TrainingSpec
from yardmaster_runner.entry_point import module_of


def as_module(path: str, facts: Facts) -> str:
    """The entry point that runs this script as the module that it is (`-m package.train`). Empty where it imports
    nothing with a leading dot, and where it lies in no folder that could be the package."""
    found = f"-m {module_name(path)}"
    dots = max((level for level, _ in facts.relative), default=0)
    return found if path.endswith(".py") and 0 < dots <= path.count("/") and module_of(found) else ""


def relative_imports(spec: TrainingSpec, facts: Facts) -> Iterator[Finding]:
    """Of a script that is run as a file, which is in no package then."""
    if not facts.relative or not spec.entry_point.endswith(".py"):
        return
    _, place = max(facts.relative, key=lambda one: one[0])
    message = "The script imports from its own package (with a leading dot), but is run as a file."
    module = as_module(spec.entry_point, facts)
    if not module:
        yield warn("relative_import", message, "Import without the leading dot.", place)
        return
    fix = Fix(f"Run {module}", "entry_point", module)
    yield warn("relative_import", message, f"Run it as a module: {module}.", place, (fix,))
