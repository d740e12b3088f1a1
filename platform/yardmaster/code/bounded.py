"""Checking untrusted code without letting it cost more than a few seconds and some memory.

A short text can be made so that Python's own parser takes gigabytes for it (a name of thirty thousand parts), or so
that walking its tree takes minutes. What is too small for that is read here; anything else in a process that limits
itself. Not here: what is looked for (`preflight`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from yardmaster.code.findings import Finding, Severity
from yardmaster.code.preflight import preflight
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_json import spec_to_json
from yardmaster.job.spec_stored import stored_spec
from yardmaster.sandbox.function import NoResult, Sandbox

HARMLESS = 12 << 10
"""Characters of source, paths included, that cost at most a second and 100 MiB, whatever they are."""
SECONDS = 15.0
_SANDBOX = Sandbox("yardmaster.code.bounded:findings_as_json", seconds=3, memory=1 << 30)
_NOT_READ = Finding(
    Severity.WARNING,
    "code_not_read",
    "The code could not be checked: parsing it takes too long or too much memory.",
    "This is not an error in your code. Very long expressions and generated files are hard to parse.",
)


def preflight_bounded(spec: TrainingSpec, files: Mapping[str, str]) -> list[Finding]:
    """As `preflight`; one warning and nothing else where the code is too hard to read. Never raises."""
    if sum(len(path) + len(text) for path, text in files.items()) <= HARMLESS:
        return preflight(spec, files)
    try:
        rows = _SANDBOX.call(spec_to_json(spec), dict(files), wait=SECONDS)
    except NoResult:
        return [_NOT_READ]
    return [Finding(Severity(row.pop("severity")), **row) for row in rows]


def findings_as_json(spec: Mapping[str, Any], files: Mapping[str, str]) -> list[dict[str, Any]]:
    """What `preflight` finds, for the sandbox: rows of `Finding`'s fields."""
    return [dataclasses.asdict(one) for one in preflight(stored_spec(spec), files)]
