"""How the page of a job says amounts, times to come and what happened. Words and markup only: nothing is read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.api.display import duration, icon, look_of
from apps.jobs.explanations.row_words import STRATEGY_WORDS
from apps.jobs.explanations.task_cards import TaskCard
from apps.jobs.models import JobEvent
from yardmaster.job.spec import TrainingSpec
from yardmaster.quantity import format_amount, format_cpu

register = template.Library()

_STRATEGIES = STRATEGY_WORDS | {"between_graph": "Parameter server (between-graph)"}
_RESOURCES = {"cpu": "CPU cores", "memory": "Memory", "gpus": "GPUs", "running_jobs": "Running jobs"}
_POOLS = {
    "quota": "in the namespace's quota",
    "capacity": "on the engine",
    "machine": "on one node",
    "nodes": "that fit on one node each",
}


_TAB_ICONS = {
    "QUEUED": ("#4299e1", "M10 7h12M10 25h12M11 7c0 6 10 12 10 18M21 7c0 6-10 12-10 18", "none"),
    "NEVER_FITS": ("#d9480f", "M16 7a9 9 0 1 0 .1 0M10 10l12 12", "none"),
    "STARTING": ("#1d4ed8", "M16 7a9 9 0 1 1-9 9", "none"),
    "RUNNING": ("#1d4ed8", "M12 9l11 7-11 7z", "#fff"),
    "STOPPING": ("#d9480f", "M12 9v14M20 9v14", "none"),
    "SUCCEEDED": ("#2b8a3e", "M8 17l5 5L24 11", "none"),
    "FAILED": ("#c92a2a", "M10 10l12 12M22 10L10 22", "none"),
    "STOPPED": ("#5c6672", "M11 11h10v10H11z", "#fff"),
}
"""Ground, shape and fill: distinguished by shape, not by colour alone."""


@dataclass(frozen=True)
class Kind:
    """A kind of event as people see it."""

    words: str
    icon: str


_KINDS = {
    "waiting": Kind("Queued", icon="hourglass"),
    "moved": Kind("Place in the queue changed", icon="list-numbers"),
    "preempted": Kind("Preempted", icon="player-pause"),
    "stop_asked": Kind("Stop requested", icon="player-stop"),
    "task_restarted": Kind("A task was restarted", icon="refresh"),
    "gang_restart": Kind("All tasks restarted", icon="refresh"),
    "task_failed": Kind("A task failed", icon="alert-circle"),
    "task_held": Kind("A failed task is held open", icon="clock"),
    "released": Kind("A task was released", icon="player-play"),
    "shell_open": Kind("Terminal opened", icon="terminal-2"),
    "shell_end": Kind("Terminal ended", icon="terminal-2"),
    "model_kept": Kind("Model saved", icon="box"),
    "quota_freed": Kind("Quota released", icon="point"),
    "logs_removed": Kind("Log removed", icon="trash"),
    "files_removed": Kind("Files removed", icon="trash"),
    "renamed": Kind("Renamed", icon="pencil"),
    "cleaned_up": Kind("Cleaned up", icon="point"),
}


@register.simple_tag
def phase_word(phase: str) -> str:
    return look_of(phase).word


@register.simple_tag
def phase_favicon(phase: str) -> str:
    """The tab's icon for this phase, as an address that holds it: no request of its own."""
    ground, shape, fill = _TAB_ICONS.get(phase, _TAB_ICONS["STOPPED"])
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" '
        f'fill="{ground}"/><path d="{shape}" fill="{fill}" stroke="#fff" stroke-width="3" stroke-linecap="round" '
        f'stroke-linejoin="round"/></svg>'
    )
    return f"data:image/svg+xml,{quote(svg)}"


@register.filter
def utc(moment: datetime) -> str:
    """As `datetime` attributes want it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@register.filter
def countdown(moment: datetime, now: datetime) -> str:
    """`in 23 s`, or `now` once it is due."""
    left = moment - now
    return f"in {duration(left)}" if left.total_seconds() >= 1 else "now"


@register.filter
def until(started: datetime, task: TaskCard) -> timedelta:
    """How long the task ran, or has run."""
    return (task.fact.finished_at or task.now) - started


@register.filter
def cores(amount: float) -> str:
    return f"{format_cpu(amount)} core{'' if amount == 1 else 's'}"


@register.filter
def strategy(name: str) -> str:
    return _STRATEGIES.get(name, name)


@register.filter
def role_title(role: str) -> str:
    """`Parameter server`."""
    return {"ps": "Parameter server"}.get(role, role.capitalize())


@register.filter
def resource(name: str) -> str:
    return _RESOURCES.get(name, name)


@register.filter
def pool(name: str) -> str:
    return _POOLS.get(name, name)


@register.filter
def of_resource(amount: float, name: str) -> str:
    return format_amount(name, amount)


@register.filter
def amounts(held: Mapping[str, float]) -> str:
    """`2 CPU cores, 4 GiB`: what is held, without what is not."""
    return ", ".join(_amount(name, amount) for name, amount in held.items() if amount)


@register.filter
def total(spec: TrainingSpec) -> str:
    """What all tasks ask for together."""
    return amounts(spec.total().as_amounts())


def _amount(name: str, amount: float) -> str:
    if name == "cpu":
        return cores(amount)
    if name == "gpus":
        return f"{format_cpu(amount)} GPU{'' if amount == 1 else 's'}"
    return format_amount(name, amount) if name == "memory" else f"{format_cpu(amount)} {name}"


@register.filter
def event_words(event: JobEvent) -> str:
    """What happened, in a word or two; the event's own message says the rest."""
    if event.kind == "phase":
        return "Queued" if event.phase_to == "QUEUED" else look_of(event.phase_to).word
    return _kind_of(event).words


@register.simple_tag
def event_mark(event: JobEvent) -> SafeString:
    look = look_of(event.phase_to) if event.kind == "phase" else None
    mark, color = (look.icon, look.color) if look else (_kind_of(event).icon, "secondary")
    return format_html('<span class="phase-{}">{}</span>', color, icon(mark))


def _kind_of(event: JobEvent) -> Kind:
    return _KINDS.get(event.kind) or Kind(event.kind.replace("_", " ").capitalize(), icon="point")
