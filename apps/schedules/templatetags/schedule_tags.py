"""Which template a job came from, for the job's page, whose app knows no templates; and schedules in words."""

from __future__ import annotations

from datetime import datetime

from django import template

from apps.jobs.models import Job
from apps.schedules.models import TemplateJob
from apps.schedules.selectors import origin_of as found_origin
from yardmaster.schedules.easy import words_of

register = template.Library()


@register.simple_tag
def origin_of(job: Job) -> TemplateJob | None:
    """The template and schedule of the job; None where it came from none."""
    return found_origin(job)


@register.filter
def cron_words(cron: str) -> str:
    """`30 2 * * *` as "Every day at 02:30"."""
    return words_of(cron)


@register.simple_tag
def local_time(moment: datetime) -> str:
    """A time on the clock of its own zone."""
    return f"{moment:%a %-d %b %Y, %H:%M} {moment.tzname()}"
