"""How pages show lines of a log without a script."""

from __future__ import annotations

import re

from django import template

from apps.jobs.models import Job
from apps.logs.view_facts import LogFacts, log_facts

register = template.Library()

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@register.simple_tag
def log_of(job: Job) -> LogFacts:
    """What `logs/viewer.html` shows of the newest attempt's log."""
    return log_facts(job, attempt=None, task="")


@register.filter
def plain(text: str) -> str:
    """The text as a terminal would leave it, without colours: of a progress bar, its last state."""
    states = [part for part in _ESCAPES.sub("", text).split("\r") if part]
    return states[-1] if states else ""
