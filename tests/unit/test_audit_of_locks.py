"""What `make audit` makes of the answers of pip-audit and npm, as they were recorded: it can fail, and says when it
checked nothing."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

_PLACE = Path(__file__).resolve().parents[2] / "deploy/setup/audit.py"
_spec = importlib.util.spec_from_file_location("audit_of_locks", _PLACE)
assert _spec is not None
assert _spec.loader is not None
audit = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = audit
_spec.loader.exec_module(audit)
Outcome, npm_verdict, pip_verdict = audit.Outcome, audit.npm_verdict, audit.pip_verdict

KNOWN = {"name": "django", "version": "5.2.19", "vulns": []}
FLAWED = {
    "name": "jinja2",
    "version": "2.4.1",
    "vulns": [{"id": "PYSEC-2019-217", "fix_versions": ["2.10.1"], "aliases": ["CVE-2019-10906"]}],
}
UNKNOWN = {
    "name": "absl-py",
    "skip_reason": "Dependency not found on PyPI and could not be audited: absl-py (2.5.1)",
}
ESBUILD = {"esbuild": {"name": "esbuild", "severity": "moderate"}}
CUT_OFF = """Traceback (most recent call last):
requests.exceptions.ConnectionError: HTTPSConnectionPool(host='example.org', port=443): Max retries exceeded
"""


@pytest.mark.parametrize(
    ("code", "packages", "errors", "outcome", "words"),
    [
        (0, [KNOWN], "No known vulnerabilities found", Outcome.CLEAN, ""),
        (1, [KNOWN, FLAWED], "", Outcome.VULNERABLE, "jinja2 2.4.1: PYSEC-2019-217 (fixed in 2.10.1)"),
        (0, [UNKNOWN, FLAWED], "", Outcome.VULNERABLE, "jinja2"),
        (0, [UNKNOWN, KNOWN], "No known vulnerabilities found", Outcome.CLEAN, "1 of 2 were not known"),
        (0, [UNKNOWN], "No known vulnerabilities found", Outcome.NOT_CHECKED, "none of the packages"),
        (0, [], "", Outcome.NOT_CHECKED, ""),
        (2, [KNOWN], "something broke", Outcome.FAILED, "something broke"),
        (1, None, CUT_OFF, Outcome.NOT_CHECKED, "ConnectionError"),
        (1, None, "ERROR: invalid requirements input: /nowhere.txt", Outcome.FAILED, "invalid requirements"),
        (127, None, "", Outcome.FAILED, "127"),
    ],
)  # fmt: skip
def test_an_answer_about_python_packages(code, packages, errors, outcome, words):
    output = "" if packages is None else json.dumps({"dependencies": packages, "fixes": []})
    verdict = pip_verdict(code, output, errors)
    assert verdict.outcome is outcome
    assert words in "\n".join(verdict.why)
    assert verdict.fails is (outcome in (Outcome.VULNERABLE, Outcome.FAILED))


@pytest.mark.parametrize(
    ("code", "answer", "errors", "outcome", "words"),
    [
        (0, {"auditReportVersion": 2, "vulnerabilities": {}, "metadata": {}}, "", Outcome.CLEAN, ""),
        (1, {"vulnerabilities": ESBUILD}, "", Outcome.VULNERABLE, "esbuild: moderate"),
        (1, {"message": "405 Method Not Allowed", "statusCode": 405, "error": {}}, "", Outcome.NOT_CHECKED, "405"),
        (1, {"error": {"code": "ENOTFOUND", "summary": "request failed"}}, "", Outcome.NOT_CHECKED, "request failed"),
        (1, {"error": {"code": "ENOLOCK", "summary": "It needs a lock file."}}, "", Outcome.FAILED, "lock file"),
        (1, None, "npm: command not found", Outcome.FAILED, "not found"),
    ],
)  # fmt: skip
def test_an_answer_about_packages_of_the_frontend(code, answer, errors, outcome, words):
    verdict = npm_verdict(code, "" if answer is None else json.dumps(answer), errors)
    assert verdict.outcome is outcome
    assert words in "\n".join(verdict.why)


@pytest.mark.parametrize(("flaws", "expected"), [({}, 0), ({"esbuild": {"severity": "high"}}, 1)])
def test_one_vulnerability_fails_the_whole(flaws, expected, monkeypatch, capsys):
    def run(command, folder=None):
        if command[0] == "git":
            return 0, "requirements.txt\nother/requirements.txt\n", ""
        if command[0] == "npm":
            return 0, json.dumps({"vulnerabilities": flaws}), ""
        return 0, json.dumps({"dependencies": [UNKNOWN]}), ""

    monkeypatch.setattr(audit, "_run", run)
    assert audit.main() == expected
    printed = capsys.readouterr().out
    assert printed.count("NOT CHECKED") == 2
    assert "other/requirements.txt" in printed


def test_without_a_lock_file_nothing_passes(monkeypatch):
    monkeypatch.setattr(audit, "_run", lambda command, folder=None: (0, "", ""))
    assert audit.main() == 1


def test_what_is_asked_about_are_locks_with_hashes():
    files = audit._run(["git", "ls-files", *audit.PIP_LOCKS])[1].split()
    assert {"requirements.txt", "deploy/images/task/requirements.txt"} <= set(files)
    assert all("--hash=sha256:" in (audit.ROOT / one).read_text() for one in files)
