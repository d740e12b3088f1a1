"""How times, sizes, quantities and states are written on pages. Pure: words and markup only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True)
class Look:
    """A state as people see it: a word, a shape, and a colour that says nothing alone."""

    word: str
    icon: str
    color: str


_WAITING = Look("Queued", icon="hourglass", color="azure")
LOOKS: Mapping[str, Look] = {
    "QUEUED": _WAITING,
    "PENDING": Look("Pending", icon="hourglass", color="azure"),
    "NEVER_FITS": Look("Can never start", icon="ban", color="orange"),
    "STARTING": Look("Starting", icon="loader", color="blue"),
    "LOADING": Look("Loading", icon="loader", color="blue"),
    "READY": Look("Ready", icon="check", color="green"),
    "RUNNING": Look("Running", icon="player-play", color="blue"),
    "STOPPING": Look("Stopping", icon="player-pause", color="orange"),
    "SUCCEEDED": Look("Succeeded", icon="check", color="green"),
    "FAILED": Look("Failed", icon="x", color="red"),
    "STOPPED": Look("Stopped", icon="square", color="secondary"),
    "RELEASED": Look("Released", icon="square", color="secondary"),
}


def look_of(phase: str) -> Look:
    """How a job's or a task's phase looks; an unknown one is its own word."""
    return LOOKS.get(phase) or Look(str(phase).capitalize(), icon="minus", color="secondary")


def icon(name: str, label: str = "") -> SafeString:
    """A Tabler icon. Without a label it is decoration: the words beside it say the same."""
    said = format_html('role="img" aria-label="{}"', label) if label else SafeString('aria-hidden="true"')
    return format_html('<svg class="icon" {}><use href="{}#{}"/></svg>', said, static("built/icons.svg"), name)


def relative(moment: datetime, now: datetime) -> str:
    """`5 min ago`, `in 2 h`, `just now`."""
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 5:
        return "just now"
    return f"{coarse(seconds)} ago" if seconds > 0 else f"in {coarse(-seconds)}"


def coarse(seconds: float) -> str:
    """A stretch of time in its largest unit: `40 s`, `5 min`, `3 h`, `2 days`."""
    for unit, length in (("day", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} day{'s' if count > 1 else ''}" if unit == "day" else f"{count} {unit}"
    return f"{int(seconds)} s"


def duration(seconds: float | timedelta | None) -> str:
    """`42 s`, `3 min 5 s`, `2 h 10 min`, `4 days 3 h`. None: nothing."""
    if seconds is None:
        return ""
    total = max(0, round(seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)))
    minutes, hours, days = total // 60, total // 3_600, total // 86_400
    if days >= 2:
        return f"{days} days {hours % 24} h" if hours % 24 else f"{days} days"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {total % 60} s" if minutes else f"{total} s"


def size(amount: float | None) -> str:
    """Bytes as people read them: `1.5 GiB`. None: nothing."""
    if amount is None:
        return ""
    value, unit = float(amount), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 10 else f"{value:.0f} {_UNITS[unit]}"


def hours(value: float | Decimal | None) -> str:
    """A number of hours: `1,234.5`; two digits of what is small, `0.0042`, so that little use does not read as none."""
    if value is None:
        return ""
    exact, least = Decimal(value), Decimal("0.0001")
    if not exact or exact >= 1:
        return f"{exact:,.1f}"
    return f"< {least}" if exact < least else f"{Decimal(f'{exact:.2g}').normalize():f}"


def amount(value: float | None, unit: str = "") -> str:
    """A quantity in its unit: `bytes` become `1.5 GiB`, all else a plain number without needless zeros."""
    if value is None:
        return "no limit"
    return size(value) if unit == "bytes" else f"{value:,.3f}".rstrip("0").rstrip(".")
