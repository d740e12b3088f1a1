"""The code and data that a spec names: whether the user may use them, and what is wrong with the code at a look."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from apps.accounts.models import User
from apps.code import selectors as code
from apps.datasets import selectors as datasets
from apps.errors import NotFound
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import quota_of
from yardmaster.code.bounded import preflight_bounded
from yardmaster.code.preflight import Finding, Severity, preflight
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import TrainingSpec

MOST_SOURCE = 2 << 20
"""Bytes of source that are read before a launch. Of larger code only a part is looked at."""


def checked_spec(user: User, spec: TrainingSpec) -> list[Finding]:
    """The warnings about this spec's code. Raises `SpecRejected` with everything that makes it impossible."""
    problems = _missing(user, spec)
    findings = [] if any(problem.field == "code" for problem in problems) else _findings(user, spec)
    problems += [_as_problem(one) for one in findings if one.severity is Severity.ERROR]
    if problems:
        raise SpecRejected(problems)
    return findings


def launch_warnings(user: User, namespace: Namespace, spec: TrainingSpec) -> list[Finding]:
    """What will not work as meant in this namespace: in the code, and its priority. Raises as `checked_spec` does."""
    found = checked_spec(user, spec)
    ceiling = quota_of(namespace).priority_ceiling
    if spec.priority <= ceiling:
        return found
    message = (
        f"Priority {spec.priority} is above the ceiling of this namespace, {ceiling}: it orders the jobs of this "
        f"namespace only. Among the jobs of other namespaces it counts as {ceiling}."
    )
    remedy = "Leave it where that is meant, or ask an administrator to raise the namespace's priority ceiling."
    return [*found, Finding(Severity.WARNING, "priority_above_ceiling", message, remedy)]


def _missing(user: User, spec: TrainingSpec) -> list[Problem]:
    found: list[Problem | None] = []
    if spec.code_version is not None:
        found.append(_problem_of(user, spec.code_version, "code", "code", code.version_for))
    for index, one in enumerate(spec.inputs):
        field = f"inputs.{index}.dataset_version"
        found.append(_problem_of(user, one.dataset_version, field, "dataset", datasets.version_for))
    return [problem for problem in found if problem is not None]


def _problem_of(
    user: User, version_id: uuid.UUID, field: str, what: str, version_for: Callable[[User, uuid.UUID], Any]
) -> Problem | None:
    try:
        version_for(user, version_id)
    except NotFound:
        command = "code" if what == "code" else "datasets"
        remedy = f"Give the id of a {what} version, as `yardmaster {command} list` shows it."
        return Problem(
            field,
            "unknown_version",
            f"There is no such {what} version, or it is not visible to you.",
            remedy,
            str(version_id),
        )
    return None


def _findings(user: User, spec: TrainingSpec) -> list[Finding]:
    if spec.code_version is None:
        return preflight(spec, {})
    version = code.version_for(user, spec.code_version)
    sources = code.sources_of(version, MOST_SOURCE)
    if spec.entry_point not in sources and any(one.path == spec.entry_point for one in code.files_of(version)):
        return []  # it is there, but too large to be read here, or no text
    return preflight_bounded(spec, sources)


def _as_problem(finding: Finding) -> Problem:
    where = f" ({finding.file}, line {finding.line})" if finding.line else ""
    field = "entry_point" if finding.code == "entry_point_missing" else "code"
    return Problem(field, finding.code, finding.message + where, finding.remedy, finding.file)
