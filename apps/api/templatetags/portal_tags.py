"""How pages say times, sizes, states and places. Words and markup only: nothing here reads the database.

`{% when time %}`  `{% phase_badge "RUNNING" %}`  `{% icon "rocket" %}`  `{% copyable text %}`  `{% pager page %}`
`{{ bytes|size }}`  `{{ seconds|duration }}`. Where the parts of every page lie (`nav`) is here, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.api.paging import Page
from apps.namespaces.models import Namespace

register = template.Library()

_BRAND = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1d4ed8"/>'
    '<path d="M16 27V17M16 17C16 12 8 13 8 6M16 17V6M16 17c0-5 8-4 8-11" fill="none" stroke="#fff" '
    'stroke-width="2.6" stroke-linecap="round"/></svg>'
)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True)
class Look:
    """A state as people see it: a word, a shape, and a colour that says nothing alone."""

    word: str
    icon: str
    color: str


_WAITING = Look("Waiting", icon="hourglass", color="azure")
LOOKS: Mapping[str, Look] = {
    "QUEUED": _WAITING,
    "PENDING": _WAITING,
    "NEVER_FITS": Look("Can never fit", icon="ban", color="orange"),
    "STARTING": Look("Starting", icon="loader", color="blue"),
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


@register.simple_tag
def brand_icon() -> str:
    """The portal's icon, as an address that holds it: no request of its own."""
    return f"data:image/svg+xml,{quote(_BRAND)}"


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """A Tabler icon. Without a label it is decoration: the words beside it say the same."""
    said = format_html('role="img" aria-label="{}"', label) if label else SafeString('aria-hidden="true"')
    return format_html('<svg class="icon" {}><use href="{}#{}"/></svg>', said, static("built/icons.svg"), name)


@register.simple_tag
def phase_badge(phase: str) -> SafeString:
    look = look_of(phase)
    return format_html('<span class="phase phase-{}">{}{}</span>', look.color, icon(look.icon), look.word)


@register.simple_tag
def phase_icon(phase: str) -> SafeString:
    """The shape alone, where the word stands beside it."""
    return icon(look_of(phase).icon)


@register.simple_tag
def when(moment: datetime | None, missing: str = "") -> SafeString:
    """Relative for reading, absolute on pointing at it; a script keeps it ticking. None: `missing`."""
    if moment is None:
        return format_html("{}", missing)
    utc = moment.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}" data-when>{}</time>',
        utc.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        f"{utc:%a %-d %b %Y, %H:%M:%S} UTC",
        relative(moment, timezone.now()),
    )


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


@register.filter
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


@register.filter
def size(amount: float | None) -> str:
    """Bytes as people read them: `1.5 GiB`. None: nothing."""
    if amount is None:
        return ""
    value, unit = float(amount), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 10 else f"{value:.0f} {_UNITS[unit]}"


@register.filter
def amount(value: float | None, unit: str = "") -> str:
    """A quantity in its unit: `bytes` become `1.5 GiB`, all else a plain number without needless zeros."""
    if value is None:
        return "no limit"
    return size(value) if unit == "bytes" else f"{value:,.3f}".rstrip("0").rstrip(".")


@register.inclusion_tag("parts/copyable.html")
def copyable(text: object, label: str = "Copy") -> dict[str, object]:
    """A command or other text in a block, with a button that copies it."""
    return {"text": text, "label": label}


@register.inclusion_tag("parts/pager.html", takes_context=True)
def pager(context: Mapping[str, Any], page: Page[Any]) -> dict[str, str]:
    """Links to the newer and the older page, with the filters of this address."""
    return {
        "newer_url": _with_cursor(context, page.newer_cursor),
        "older_url": _with_cursor(context, page.older_cursor),
    }


def _with_cursor(context: Mapping[str, Any], cursor: str | None) -> str:
    if cursor is None:
        return ""
    query = context["request"].GET.copy()
    query["cursor"] = cursor
    return f"?{query.urlencode()}"


@register.simple_tag
def quota_bar(used: float, reserved: float, hard: float) -> SafeString:
    """A bar of what is used and set aside of a limit. Decoration: the numbers stand beside it."""
    whole = max(hard, used + reserved) or 1
    filled, held = 100 * used / whole, 100 * (used + reserved) / whole
    level = "full" if used + reserved >= hard else "high" if held >= 80 else "fine"
    return format_html(
        '<svg class="quota-bar quota-{}" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="quota-hard" width="100" height="1"/><rect class="quota-reserved" width="{}" height="1"/>'
        '<rect class="quota-used" width="{}" height="1"/></svg>',
        level, f"{held:.2f}", f"{filled:.2f}",
    )  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One of the main places."""

    name: str
    url_name: str
    icon: str


MAIN = (
    Entry("Home", "home", icon="home"),
    Entry("Jobs", "jobs_page", icon="list-details"),
    Entry("Launch", "launch_page", icon="rocket"),
    Entry("Datasets", "datasets_page", icon="database"),
    Entry("Code", "code_list_page", icon="code"),
    Entry("Models", "models_page", icon="box"),
)


@register.inclusion_tag("parts/nav.html", takes_context=True)
def nav(context: Mapping[str, Any]) -> dict[str, Any]:
    """The main places; the one that this page belongs to is marked."""
    path = context["request"].path
    urls = {one.url_name: reverse(one.url_name) for one in MAIN}
    # The longest address that this one begins with: `/jobs/launch/` is Launch, though it lies below Jobs.
    begun = [url for url in urls.values() if path == url or (url != "/" and path.startswith(url))]
    here = max(begun, key=len, default="")
    return {"entries": [{"place": one, "url": urls[one.url_name], "here": urls[one.url_name] == here} for one in MAIN]}


@register.simple_tag(takes_context=True)
def namespace_url(context: Mapping[str, Any], namespace: Namespace) -> str:
    """Where choosing a namespace leads: the same list in it, or Home from the page of one thing."""
    match = context["request"].resolver_match
    is_list = match is not None and not match.kwargs and context["request"].method == "GET"
    return f"{context['request'].path if is_list else '/'}?namespace={namespace.slug}"
