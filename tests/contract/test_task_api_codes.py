"""The runner takes an answer for the portal's word by its code: both sides' lists are held together here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import yardmaster
from apps.api import problems
from yardmaster_runner.answers import CODES

ROOT = Path(yardmaster.__file__).parents[2]
SOURCES = [
    "apps/errors.py",
    "apps/api/problems.py",
    "apps/jobs/state/task_auth.py",
    "apps/jobs/task_api/orders.py",
    "apps/jobs/task_api/reports.py",
    "apps/jobs/state/results.py",
    "apps/jobs/state/curves.py",
    "apps/jobs/task_api/views.py",
    "apps/jobs/task_api/package_views.py",
    "apps/environments/services.py",
    "apps/environments/package_index.py",
    "apps/logs/append_at_once.py",
    "apps/logs/intake.py",
    "apps/logs/serializers.py",
    "apps/logs/task_views.py",
    "apps/jobs/state/log_charges.py",
    "apps/secrets/delivery.py",
    "apps/secrets/sealing.py",
    "apps/uploads/delivery.py",
    "apps/uploads/finishing.py",
    "apps/uploads/parsers.py",
    "apps/uploads/part_addresses.py",
    "apps/uploads/selectors.py",
    "apps/uploads/services.py",
    "apps/uploads/storage_ledger.py",
    "platform/portal/body_limit.py",
    "platform/portal/rate_limit.py",
    "platform/yardmaster/errors.py",
    "platform/yardmaster/logs/keys.py",
    "platform/yardmaster/logs/volume.py",
    "platform/yardmaster/storage/base.py",
]
"""What may refuse a call of a task."""
NOT_THE_TASKS = {
    "malformed": "the runner sends requests that can be read; one that cannot was changed on its way",
    "needs_grant": "is caught before it is an answer",
    "spec_rejected": "of launches",
}
WITHOUT_A_NAME = {
    "Conflict": "conflict",
    "Gone": "job_gone",
    "NotFound": "not_found",
    "Forbidden": "permission_denied",
    "Invalid": "invalid",
    "QuotaExceeded": "quota_full",
    "TooLarge": "too_large",
}
CODE_AT = {"ApiProblem": 1, "Conflict": 1, "Gone": 1, "NotFound": 1, "TooMany": 1, "Unprocessable": 1}


def codes_in(tree: ast.AST) -> Iterator[str]:
    """Every code that is given to a problem, and those of the errors that are declared."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name, at = node.func.id, CODE_AT.get(node.func.id)
            given = [one.value for one in node.keywords if one.arg == "code"]
            given += node.args[at : at + 1] if at is not None else []
            found: list[str] = [one.value for one in given if isinstance(one, ast.Constant)]
            if name in WITHOUT_A_NAME and not given:
                found = [WITHOUT_A_NAME[name]]
            yield from found
        elif isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, ast.Assign) and any(getattr(to, "id", "") == "code" for to in one.targets):
                    assert isinstance(one.value, ast.Constant)
                    yield one.value.value


def codes_of_the_task_api() -> set[str]:
    found = {code for source in SOURCES for code in codes_in(ast.parse((ROOT / source).read_text()))}
    return found | set(problems._CODES.values())


def test_the_runner_knows_every_code_of_the_task_api_and_no_other() -> None:
    found = codes_of_the_task_api()
    assert NOT_THE_TASKS.keys() <= found, "an exception that is none any more"
    assert found - NOT_THE_TASKS.keys() == CODES


def test_what_refuses_a_host_is_not_the_portals_word() -> None:
    assert "host_refused" in set(codes_in(ast.parse((ROOT / "apps/api/outside.py").read_text())))
    assert "host_refused" not in CODES
