"""Looking at strangers' code without letting it cost more than a few seconds and some memory.

A short text can be made so that Python's own parser takes gigabytes for it (a name of thirty thousand parts), or so
that walking its tree takes minutes. What is too small for that is read here; anything else in a process of its own
(`preflight_program`) that limits itself and is killed when it is late. Not here: what is looked for (`preflight`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yardmaster.preflight import Finding, Severity, preflight
from yardmaster.spec import TrainingSpec
from yardmaster.spec_json import spec_to_json

HARMLESS = 12 << 10
"""Characters of source that cost at most a second and 100 MiB, whatever they are."""
SECONDS = 15.0
_AT_ONCE = threading.BoundedSemaphore(2)
_NOT_READ = Finding(
    Severity.WARNING,
    "code_not_read",
    "The code could not be looked at: reading it takes too long, or too much memory.",
    "Nothing is known to be wrong with it. Very long expressions and generated files are what is hard to read.",
)


def preflight_bounded(spec: TrainingSpec, files: Mapping[str, str]) -> list[Finding]:
    """As `preflight`; one warning and nothing else where the code is too hard to read. Never raises."""
    if sum(map(len, files.values())) <= HARMLESS:
        return preflight(spec, files)
    if not _AT_ONCE.acquire(timeout=SECONDS):
        return [_NOT_READ]
    try:
        rows = _run(json.dumps({"spec": spec_to_json(spec), "files": dict(files)}).encode())
    finally:
        _AT_ONCE.release()
    return [_NOT_READ] if rows is None else [Finding(Severity(row.pop("severity")), **row) for row in rows]


def _run(task: bytes) -> list[dict[str, Any]] | None:
    """What the program found; None where it came to nothing."""
    root = str(Path(__file__).resolve().parents[1])
    with subprocess.Popen(
        [sys.executable, "-S", "-s", "-m", "yardmaster.preflight_program"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": root},
    ) as child:
        try:
            output, _ = child.communicate(task, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            return None
    if child.returncode != 0:
        return None
    rows: list[dict[str, Any]] = json.loads(output)
    return rows
