"""How pages say times, sizes, states and places. Words and markup only: nothing here reads the database.

`{% when time %}`  `{% phase_badge "RUNNING" %}`  `{% icon "rocket" %}`  `{% copyable text %}`  `{% pager page %}`
`{{ bytes|size }}`  `{{ seconds|duration }}`. Where the parts of every page lie (`nav`) is here, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.api.display import amount, duration, hours, icon, look_of, relative, size
from apps.api.paging import Page

register = template.Library()
register.filter(duration)
register.filter(size)
register.filter(hours)
register.filter(amount)
register.simple_tag(icon)

_BRAND = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1d4ed8"/>'
    '<path d="M16 27V17M16 17C16 12 8 13 8 6M16 17V6M16 17c0-5 8-4 8-11" fill="none" stroke="#fff" '
    'stroke-width="2.6" stroke-linecap="round"/></svg>'
)


@register.simple_tag
def brand_icon() -> str:
    """The portal's icon, as an address that holds it: no request of its own."""
    return f"data:image/svg+xml,{quote(_BRAND)}"


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


@register.inclusion_tag("parts/copyable.html")
def copyable(text: object, label: str = "Copy") -> dict[str, object]:
    """A command or other text in a block, with a button that copies it."""
    return {"text": text, "label": label}


@register.inclusion_tag("parts/pager.html", takes_context=True)
def pager(context: Mapping[str, Any], page: Page[Any], newer: str = "Newer", older: str = "Older") -> dict[str, str]:
    """Links to the newer and the older page, with the filters of this address. `newer`, `older`: their words, for
    lists in another order."""
    return {
        "newer": newer,
        "older": older,
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
    also: str = ""
    """The beginning of other addresses that belong to it."""
    begins: str = ""
    """What the places from this one on are called together, up to the next that has such a word."""


MAIN = (
    Entry("Home", "home", icon="home"),
    Entry("Jobs", "jobs_page", icon="list-details"),
    Entry("Launch", "launch_page", icon="rocket"),
    Entry("Datasets", "datasets_page", icon="database"),
    Entry("Code", "code_list_page", icon="code"),
    Entry("Models", "models_page", icon="box", also="/model-versions/"),
    Entry("Workbench", "workbench_page", icon="flask", also="/sessions/"),
)


_ROOTS = ("/", "/admin/")
"""Addresses with which those of other places begin."""


@register.inclusion_tag("parts/nav.html", takes_context=True)
def nav(context: Mapping[str, Any]) -> dict[str, Any]:
    """The main places; the one that this page belongs to is marked."""
    return {"entries": _marked(MAIN, context["request"].path)}


def _marked(places: tuple[Entry, ...], path: str) -> list[dict[str, Any]]:
    """The places with their addresses; `here` marks the one that the page at `path` belongs to."""
    urls = {one.url_name: reverse(one.url_name) for one in places}
    path = next((urls[one.url_name] for one in places if one.also and path.startswith(one.also)), path)
    # The longest address that this one begins with: `/jobs/launch/` is Launch, though it lies below Jobs.
    begun = [url for url in urls.values() if path == url or (url not in _ROOTS and path.startswith(url))]
    here = max(begun, key=len, default="")
    return [{"place": one, "url": urls[one.url_name], "here": urls[one.url_name] == here} for one in places]


AREA = (
    Entry("Overview", "admin_page", icon="gauge"),
    Entry("Dashboard", "admin_dashboard_page", icon="dashboard"),
    Entry("Users", "admin_users_page", icon="users", begins="Access"),
    Entry("Teams", "admin_teams_page", icon="users-group"),
    Entry("Invitations", "admin_invitations_page", icon="mail"),
    Entry("Removals", "removals_page", icon="trash"),
    Entry("Queue", "admin_queue_page", icon="list-numbers", begins="Jobs"),
    Entry("Engines", "admin_engines_page", icon="server"),
    Entry("Machines", "admin_machines_page", icon="server"),
    Entry("Spark clusters", "admin_spark_clusters_page", icon="bolt"),
    Entry("Presets", "admin_presets_page", icon="rocket"),
    Entry("Images", "images_page", icon="stack-2"),
    Entry("Retention", "admin_retention_page", icon="clock"),
    Entry("Quotas", "admin_quotas_page", icon="adjustments", begins="Limits and priority"),
    Entry("Shares", "admin_shares_page", icon="chart-pie"),
    Entry("Priority classes", "admin_priorities_page", icon="arrow-big-up-lines"),
    Entry("Preemption", "admin_preemption_page", icon="player-pause"),
    Entry("Reservations", "admin_reservations_page", icon="calendar"),
    Entry("Usage", "admin_usage_page", icon="chart-bar", begins="Accounting"),
    Entry("Budgets", "admin_budgets_page", icon="coins"),
    Entry("Notice", "admin_notice_page", icon="speakerphone", begins="Portal"),
    Entry("Settings", "admin_settings_page", icon="settings"),
    Entry("Audit", "audit_page", icon="list-details"),
)
"""The places of the admin area, those together that are used together."""


@register.inclusion_tag("administration/nav.html", takes_context=True)
def admin_nav(context: Mapping[str, Any]) -> dict[str, Any]:
    """The places of the admin area; the one that this page belongs to is marked."""
    return {"entries": _marked(AREA, context["request"].path)}


@register.simple_tag(takes_context=True)
def namespace_url(context: Mapping[str, Any], slug: str) -> str:
    """Where choosing the namespace of this slug leads: the same list in it, or Home from the page of one thing."""
    match = context["request"].resolver_match
    is_list = match is not None and not match.kwargs and context["request"].method == "GET"
    return f"{context['request'].path if is_list else '/'}?namespace={slug}"
