"""The page of the audit: who did what, filtered by the address, and as a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_safe

from apps.accounts.browsers import agent_words
from apps.accounts.models import User
from apps.administration.audit_actions import GROUPED, action_words
from apps.administration.audit_export import FORMATS, export_response
from apps.administration.audit_selectors import addresses_hide, events_matching, events_visible, namespaces_of
from apps.api.paging import page_of
from apps.audit.models import AuditEvent
from yardmaster.quantity import format_bytes

AT_ONCE = 50
_LONGEST_FACT = 200
_SIZES = {"memory", "storage", "logs"}
"""Facts that are counts of bytes."""
_SHORT_ID = 13
"""As much of an id as tells it from others: its first part is a time."""


class FilterForm(forms.Form):
    action = forms.ChoiceField(choices=[("", "Any action"), *GROUPED], required=False)
    person = forms.CharField(label="User", max_length=150, required=False)
    namespace = forms.CharField(max_length=63, required=False)
    object = forms.CharField(max_length=200, required=False)
    address = forms.GenericIPAddressField(label="From address", required=False)
    words = forms.CharField(label="Words", max_length=200, required=False)
    since = forms.DateField(required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, widget=forms.DateInput(attrs={"type": "date"}))


@login_required
@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    """Administrators see all, others what they did, what was done to their account, and their namespaces."""
    form, rows = _wanted(request)
    page = page_of(rows, request.GET.get("cursor"), AT_ONCE)
    addresses_hide(page.rows)
    names = namespaces_of(page.rows)
    context = {
        "form": form,
        "page": page,
        "events": [_shown(event, names.get(event.namespace_id, "")) for event in page.rows],
        "is_filtered": any(form.cleaned_data.values()) if form.is_valid() else True,
        "filters": _query(request),
    }
    return render(request, "audit/audit.html", context)


@login_required
@require_safe
def audit_export(request: HttpRequest, form: str) -> HttpResponseBase:
    """What the page shows, all of it, as a file."""
    _, rows = _wanted(request)
    return export_response(request, rows, form)


def _wanted(request: HttpRequest) -> tuple[FilterForm, Any]:
    """The filters, and the events that fit them: none where a filter makes no sense."""
    assert isinstance(request.user, User), "login_required has seen to it"
    form = FilterForm(request.GET)
    rows = events_visible(request.user)
    return form, events_matching(rows, form.cleaned_data, request.user) if form.is_valid() else rows.none()


def _query(request: HttpRequest) -> str:
    query = request.GET.copy()
    query.pop("cursor", None)
    return query.urlencode()


def _shown(event: AuditEvent, namespace: str) -> dict[str, Any]:
    """One event in words."""
    return {
        "at": event.at,
        "who": event.actor_name or (event.facts.get("name", "") if event.action == "session.fail" else _portal(event)),
        "words": action_words(event.action),
        "is_failure": event.action in ("session.fail", "password.fail"),
        "details": [one for one in _details(event, namespace) if one],
        "count": event.count,
    }


def _portal(event: AuditEvent) -> str:
    """The portal, and what of it acted."""
    acted = event.facts.get("acted", "")
    return f"the portal ({acted.replace('_', ' ')})" if acted else "the portal"


def _details(event: AuditEvent, namespace: str) -> Iterator[str]:
    """Where, on what, from where, and the facts of an event; those that are not known are empty."""
    yield f"in {namespace}" if namespace else ""
    noun, _, identity = event.subject.partition(":")
    yield f"{noun.replace('_', ' ')} {identity[:_SHORT_ID]}" if identity else ""
    words = agent_words(event.agent)
    words = words[0].lower() + words[1:] if words.startswith(("A ", "An ")) else words
    agent = f" with {words}" if event.agent else ""
    yield f"from {event.address}{agent}" if event.address else ""
    for name, value in event.facts.items():
        if name == "acted":
            continue  # said with who did it
        words = _words(value, name)[:_LONGEST_FACT]
        yield f"{name.replace('_', ' ')}: {words}" if words else ""


def _words(value: Any, name: str = "") -> str:
    """A fact as people write it; what is not set is left out."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(
            f"{key.replace('_', ' ')} {_words(one, key)}" for key, one in value.items() if one not in (None, "", {}, [])
        )
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    if isinstance(value, int | float) and name in _SIZES:
        return format_bytes(value)
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("audit/", audit, name="audit_page"),
    *[path(f"audit/audit.{form}", audit_export, {"form": form}, name=f"audit_{form}") for form in FORMATS],
]
