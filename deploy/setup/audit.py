"""`make audit`: whether anything that is locked has a known vulnerability. Asks pip-audit for every lock file of
Python, and npm for the frontend's.

A vulnerability fails. A service that cannot be reached, or that knows none of the packages, does not: the machine may
be cut off. One line says so, since nothing was checked then. Anything else that goes wrong fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PIP_LOCKS = ("*requirements*.txt", ":!examples/gallery/")
"""Those of the gallery are what people bring: ranges of versions, which lock nothing."""
_NAMED = 5
_UNREACHABLE = (
    "ConnectionError",
    "ConnectTimeout",
    "ReadTimeout",
    "ProxyError",
    "SSLError",
    "ServiceError",
    "Max retries exceeded",
    "Name or service not known",
    "Could not connect",
)
_NPM_UNREACHABLE = {"ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EAI_AGAIN", "ERR_SOCKET_TIMEOUT"}


class Outcome(Enum):
    CLEAN = "no known vulnerability"
    VULNERABLE = "VULNERABLE"
    NOT_CHECKED = "NOT CHECKED"
    FAILED = "FAILED"


@dataclass(frozen=True)
class Verdict:
    """What an answer means, and why: one line each."""

    outcome: Outcome
    why: Sequence[str] = field(default=())

    @property
    def fails(self) -> bool:
        return self.outcome in (Outcome.VULNERABLE, Outcome.FAILED)


def pip_verdict(code: int, output: str, errors: str) -> Verdict:
    """From what `pip-audit --format json` printed. Its exit code says nothing: it is 0 when no package was known."""
    answer = _json(output)
    packages = answer.get("dependencies") if isinstance(answer, dict) else None
    if not isinstance(packages, list):
        return _without_answer(code, errors)
    found = [
        f"{one['name']} {one['version']}: {flaw['id']}{_fixed(flaw.get('fix_versions'))}"
        for one in packages
        for flaw in one.get("vulns", ())
    ]
    if found:
        return Verdict(Outcome.VULNERABLE, found)
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    if len(skipped) == len(packages):
        return Verdict(Outcome.NOT_CHECKED, ["The package index knows none of the packages, or does not answer."])
    if code != 0:
        return _without_answer(code, errors)
    if not skipped:
        return Verdict(Outcome.CLEAN)
    more = f" and {len(skipped) - _NAMED} more" if len(skipped) > _NAMED else ""
    names = ", ".join(skipped[:_NAMED])
    return Verdict(Outcome.CLEAN, [f"{len(skipped)} of {len(packages)} were not known to the index: {names}{more}"])


def npm_verdict(code: int, output: str, errors: str) -> Verdict:
    """From what `npm audit --json` printed."""
    answer = _json(output)
    if not isinstance(answer, dict):
        return _without_answer(code, errors)
    flaws = answer.get("vulnerabilities")
    if isinstance(flaws, dict):
        found = [f"{name}: {flaw.get('severity', 'unknown')}" for name, flaw in sorted(flaws.items())]
        if not found and code == 0:
            return Verdict(Outcome.CLEAN)
        return Verdict(Outcome.VULNERABLE, found) if found else _without_answer(code, errors)
    trouble = answer.get("error") or {}
    message = str(answer.get("message") or trouble.get("summary") or trouble or "no answer")
    if "statusCode" in answer or trouble.get("code") in _NPM_UNREACHABLE:
        return Verdict(Outcome.NOT_CHECKED, [f"The registry does not answer this question: {_first_line(message)}"])
    return Verdict(Outcome.FAILED, [_first_line(message)])


def _without_answer(code: int, errors: str) -> Verdict:
    last = _first_line(errors.strip().rpartition("\n")[2]) or f"it printed nothing and ended with {code}"
    if any(sign in errors for sign in _UNREACHABLE):
        return Verdict(Outcome.NOT_CHECKED, [f"The service does not answer: {last}"])
    return Verdict(Outcome.FAILED, [last])


def _fixed(versions: Any) -> str:
    return f" (fixed in {', '.join(versions)})" if versions else ""


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:300]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _run(command: Sequence[str | Path], folder: Path = ROOT) -> tuple[int, str, str]:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    except subprocess.TimeoutExpired:
        return 1, "", "ReadTimeout: no answer within ten minutes"
    except OSError as error:
        return 1, "", str(error)
    return done.returncode, done.stdout, done.stderr


def main() -> int:
    """Ask for every lock file, print a line or more for each, and return the exit code."""
    bin_folder = Path(sys.executable).parent
    locks = _run(["git", "ls-files", *PIP_LOCKS])[1].split()
    if not locks:
        print("FAILED: there is no lock file to check")  # noqa: T201
        return 1
    verdicts = {}
    for lock in locks:
        options = ["--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
        verdicts[lock] = pip_verdict(*_run([bin_folder / "pip-audit", "--requirement", lock, *options]))
    npm = _run(["npm", "audit", "--package-lock-only", "--json"], ROOT / "frontend")
    verdicts["frontend/package-lock.json"] = npm_verdict(*npm)
    for lock, verdict in verdicts.items():
        line = (". ", "\n    ")[verdict.fails].join([f"{lock}: {verdict.outcome.value}", *verdict.why])
        print(line)  # noqa: T201
    return 1 if any(verdict.fails for verdict in verdicts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
