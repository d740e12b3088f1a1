"""Which sweep a job is a trial of, for the job's page, whose app knows no sweeps."""

from __future__ import annotations

from django import template

from apps.jobs.models import Job
from apps.sweeps.models import SweepTrial
from apps.sweeps.selectors import trial_of
from yardmaster.sweeps.space import text_of

register = template.Library()


@register.simple_tag
def trial_of_job(job: Job) -> SweepTrial | None:
    """The trial whose job this is, with its sweep; None where it is of none."""
    return trial_of(job)


@register.filter
def value_words(values: dict[str, object]) -> list[tuple[str, str]]:
    """A trial's parameters, each with its value as text."""
    return [(name, text_of(value)) for name, value in values.items()]  # type: ignore[arg-type]
