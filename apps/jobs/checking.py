"""The answer to "would it run?" before a launch: rules, code, room, and the engine's own bounds, all at once. Creates
nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from apps.accounts.models import User
from apps.jobs.engines.configured import engine_chosen, engine_named
from apps.jobs.engines.manifests import manifests_of_spec
from apps.jobs.explanations import waiting_words
from apps.jobs.state.books import books_of, queued_on
from apps.jobs.state.specs import asked_spec
from apps.jobs.versions import launch_warnings
from apps.namespaces.models import Namespace
from yardmaster.code.preflight import Finding
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import TrainingSpec
from yardmaster.queueing.fitting import Check, Fit, check
from yardmaster.queueing.ledger import Candidate


@dataclass(frozen=True)
class JobCheck:
    """The verdict `never_fits` comes with `problems` where the job is not valid, else with `numbers`."""

    verdict: str
    reason: str
    message: str
    remedy: str = ""
    position: int | None = None
    numbers: Sequence[Mapping[str, Any]] = ()
    largest_fit: Mapping[str, int] | None = None
    problems: Sequence[Problem] = ()
    warnings: Sequence[Finding] = field(default=())


def job_check(*, user: User, namespace: Namespace, data: object, engine: str | None) -> JobCheck:
    """What would become of this job in this namespace now. Raises only where the user may not launch at all."""
    chosen = engine_chosen(user, engine)
    try:
        spec = asked_spec(data)
        warnings = launch_warnings(user, namespace, spec)
    except SpecRejected as error:
        return _refused(error)
    found = check_capacity(spec, namespace.pk, chosen, timezone.now())
    if found.verdict is not Fit.NEVER_FITS:  # which has numbers, and so says more
        try:
            manifests_of_spec(user, namespace, spec, chosen)
        except SpecRejected as error:
            return replace(_refused(error), warnings=warnings)
    return _shown(found, warnings)


def check_capacity(spec: TrainingSpec, namespace_id: uuid.UUID, engine: str, now: datetime) -> Check:
    """What admission would say of a job that came now. Promises nothing."""
    last_of_now = uuid.UUID(int=(1 << 128) - 1)
    candidate = Candidate.of(spec, job_id=last_of_now, namespace_id=namespace_id, queued_at=now)
    books = books_of(engine, engine_named(engine).capacity(), also=namespace_id)
    waiting = [one.candidate for one in queued_on(engine)]
    return check(spec, candidate, waiting, books, now, settings.YARDMASTER_PASSING_LIMIT)


def _refused(error: SpecRejected) -> JobCheck:
    return JobCheck(
        Fit.NEVER_FITS.value, error.code, "The job is not valid.", "Correct the fields listed in `problems`.",
        problems=error.problems,
    )  # fmt: skip


def _shown(found: Check, warnings: Sequence[Finding]) -> JobCheck:
    return JobCheck(
        verdict=found.verdict.value,
        reason="" if found.code is None else found.code.value,
        message=found.message,
        remedy=found.remedy,
        position=found.position if found.verdict is Fit.WAITS else None,
        numbers=[waiting_words.shortage_json(one) for one in found.numbers],
        largest_fit=None if found.largest_fit is None else {role.value: n for role, n in found.largest_fit.items()},
        warnings=warnings,
    )
