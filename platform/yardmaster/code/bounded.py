"""Checking untrusted code without letting it cost more than a few seconds and some memory.

A short text can be made so that Python's own parser takes gigabytes for it (a name of thirty thousand parts), or so
that walking its tree takes minutes. What is too small for that is read here; anything else in a process that limits
itself. Not here: what is looked for (`preflight`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from yardmaster.code.findings import Finding, Fix, Severity
from yardmaster.code.path_flags import with_flags
from yardmaster.code.preflight import Examination, examine
from yardmaster.code.strategy_signs import Likely, likely_job
from yardmaster.code.surroundings import Surroundings, own_names
from yardmaster.job.spec import Paths, Strategy, TrainingSpec
from yardmaster.job.spec_json import spec_to_json
from yardmaster.job.spec_stored import stored_spec
from yardmaster.sandbox.function import NoResult, Sandbox

HARMLESS = 12 << 10
"""Characters of source, paths included, that cost at most a second and 100 MiB, whatever they are."""
SECONDS = 15.0
_SANDBOX = Sandbox("yardmaster.code.bounded:examined_as_json", seconds=3, memory=1 << 30)
_LIKELY = Sandbox("yardmaster.code.bounded:likely_as_json", seconds=3, memory=1 << 30)
_NOT_READ = Finding(
    Severity.WARNING,
    "code_not_read",
    "The code could not be checked: parsing it takes too long or too much memory.",
    "This is not an error in your code. Very long expressions and generated files are hard to parse.",
)


def preflight_bounded(spec: TrainingSpec, files: Mapping[str, str]) -> list[Finding]:
    """The findings of `examine_bounded` alone."""
    return examine_bounded(spec, files).findings


def examine_bounded(spec: TrainingSpec, files: Mapping[str, str], around: Surroundings | None = None) -> Examination:
    """As `examine`; one warning and nothing else where the code is too hard to read. Never raises."""
    around = around or Surroundings(own_names(files))
    if sum(len(path) + len(text) for path, text in files.items()) <= HARMLESS:
        return examine(spec, files, around)
    try:
        found = _SANDBOX.call(spec_to_json(spec), dict(files), around.as_json(), wait=SECONDS)
    except NoResult:
        return Examination([_NOT_READ], with_flags(spec, None))
    return Examination([_finding(row) for row in found["findings"]], replace(spec, paths=Paths(**found["paths"])))


def likely_bounded(files: Mapping[str, str], entry_point: str) -> Likely | None:
    """As `likely_job`; None, too, where the code is too hard to read."""
    if sum(len(path) + len(text) for path, text in files.items()) <= HARMLESS:
        return likely_job(files, entry_point)
    try:
        found = _LIKELY.call(dict(files), entry_point, wait=SECONDS)
    except NoResult:
        return None
    if found is None:
        return None
    return Likely(Strategy(found["strategy"]), tuple(found["arguments"]), found["entry_point"], found["tf1"])


def likely_as_json(files: Mapping[str, str], entry_point: str) -> dict[str, Any] | None:
    """What `likely_job` finds, for the sandbox."""
    found = likely_job(files, entry_point)
    return None if found is None else asdict(found)


def examined_as_json(spec: Mapping[str, Any], files: Mapping[str, str], around: Mapping[str, Any]) -> dict[str, Any]:
    """What `examine` finds, for the sandbox: rows of `Finding`'s fields, and the decided paths."""
    found = examine(stored_spec(spec), files, Surroundings.of_json(around))
    return {"findings": [asdict(one) for one in found.findings], "paths": asdict(found.spec.paths)}


def _finding(row: dict[str, Any]) -> Finding:
    fixes = tuple(Fix(**one) for one in row.pop("fixes"))
    return Finding(Severity(row.pop("severity")), fixes=fixes, **row)
