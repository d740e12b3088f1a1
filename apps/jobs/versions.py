"""The code and data that a spec names: whether the user may use them, and what is wrong with the code at a look."""

from __future__ import annotations

import uuid
from typing import Any

from apps.accounts.models import User
from apps.code.models import CodeVersion
from apps.code.selectors import CODE
from apps.datasets.selectors import DATASETS
from apps.errors import NotFound
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import quota_of
from apps.stores import storage
from apps.uploads.versioned.selectors import Shelf, files_of, version_for
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
        found.append(_problem_of(user, spec.code_version, "code", "code", CODE))
    for index, one in enumerate(spec.inputs):
        field = f"inputs.{index}.dataset_version"
        found.append(_problem_of(user, one.dataset_version, field, "dataset", DATASETS))
    return [problem for problem in found if problem is not None]


def _problem_of(user: User, version_id: uuid.UUID, field: str, what: str, shelf: Shelf[Any, Any]) -> Problem | None:
    try:
        version_for(shelf, user, version_id)
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
    version = version_for(CODE, user, spec.code_version)
    sources = sources_of(version, MOST_SOURCE)
    if spec.entry_point not in sources and any(one.path == spec.entry_point for one in files_of(version)):
        return []  # it is there, but too large to be read here, or no text
    return preflight_bounded(spec, sources)


def sources_of(version: CodeVersion, limit_bytes: int) -> dict[str, str]:
    """The text of its Python files, by path, as long as `limit_bytes` last: shallow and small ones come first, so that
    entry points are there whatever lies beside them. What is not UTF-8 has replacement characters."""
    python = [file for file in files_of(version) if file.path.endswith(".py")]
    sources: dict[str, str] = {}
    for file in sorted(python, key=lambda file: (file.path.count("/"), file.size, file.path)):
        if file.size <= limit_bytes:
            limit_bytes -= file.size
            with storage().open_range(file.key) as stream:
                sources[file.path] = stream.read(file.size).decode("utf-8-sig", "replace")
    return sources


def _as_problem(finding: Finding) -> Problem:
    where = f" ({finding.file}, line {finding.line})" if finding.line else ""
    field = "entry_point" if finding.code == "entry_point_missing" else "code"
    return Problem(field, finding.code, finding.message + where, finding.remedy, finding.file)
