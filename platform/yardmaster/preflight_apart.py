"""Looking at strangers' code without letting it cost more than a few seconds and some memory.

A short text can be made so that Python's own parser takes gigabytes for it (a name of thirty thousand parts), or so
that walking its tree takes minutes. What is too small for that is read here; anything else in a process of its own
(`preflight_program`) that limits itself and is killed when it is late. Not here: what is looked for (`preflight`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from yardmaster.apart import Apart
from yardmaster.preflight import Finding, Severity, preflight
from yardmaster.spec import TrainingSpec
from yardmaster.spec_json import spec_to_json

HARMLESS = 12 << 10
"""Characters of source, paths included, that cost at most a second and 100 MiB, whatever they are."""
SECONDS = 15.0
_READERS = Apart("yardmaster.preflight_program")
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
    task = json.dumps({"spec": spec_to_json(spec), "files": dict(files)}).encode()
    ended = _READERS.run(task, seconds=SECONDS)
    if ended is None or not ended.is_well:
        return [_NOT_READ]
    return [Finding(Severity(row.pop("severity")), **row) for row in json.loads(ended.output)]
