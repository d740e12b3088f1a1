"""Ask `yardmaster.fitting` what admission would say of a job that is not launched yet. Changes nothing.

Not here: deciding the jobs that are (`queue_pass`).
"""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings

from apps.jobs.books import books_of, queued_on
from apps.jobs.engines import engine_named
from yardmaster.fitting import Check, check
from yardmaster.ledger import Candidate
from yardmaster.spec import TrainingSpec


def check_job(spec: TrainingSpec, namespace_id: uuid.UUID, engine: str, now: datetime) -> Check:
    """What admission would say of a job that came now. Promises nothing."""
    last_of_now = uuid.UUID(int=(1 << 128) - 1)
    candidate = Candidate.of(spec, job_id=last_of_now, namespace_id=namespace_id, queued_at=now)
    books = books_of(engine, engine_named(engine).capacity(), also=namespace_id)
    waiting = [one.candidate for one in queued_on(engine)]
    return check(spec, candidate, waiting, books, now, settings.YARDMASTER_PASSING_LIMIT)
