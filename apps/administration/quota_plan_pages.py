"""The pages of scheduled changes of quotas, and of what a new namespace may hold."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.administration.namespace_forms import QuotaForm
from apps.administration.quota_defaults import defaults_set, defaults_shown
from apps.administration.quota_schedules import MOST_OPEN, schedule_cancel, schedule_for, schedules_open
from apps.administration.usage import NAMES_OF_CHANGES
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.errors import Conflict, DomainError, words_of
from apps.namespaces.models import Quota, ScheduledQuota
from apps.namespaces.quota_models import Kind

AT_ONCE = 50
LONGEST_SLUG = 63


@administrators_only
@require_safe
def schedules(request: HttpRequest) -> HttpResponse:
    """Those to come or in force; of one namespace where the address names it."""
    slug = request.GET.get("namespace", "").strip()[:LONGEST_SLUG]
    rows = schedules_open()
    page = page_of(rows.filter(namespace__slug=slug) if slug else rows, request.GET.get("cursor"), AT_ONCE)
    context = {
        "page": page,
        "rows": [(one, _limits(one)) for one in page.rows],
        "slug": slug,
        "now": timezone.now(),
        "most": MOST_OPEN,
        "breadcrumbs": [(reverse("admin_quotas_page"), "Quotas")],
    }
    return render(request, "administration/quota_schedules.html", context)


def _limits(one: ScheduledQuota) -> list[tuple[str, Any, str]]:
    """Each limit in words: its name, the amount and the unit."""
    found = [(key, limit, *NAMES_OF_CHANGES.get(key, (key, ""))) for key, limit in one.limits.items()]
    return [(name, limit, unit) for _, limit, name, unit in found]


@administrators_only
@require_POST
def schedule_end(request: HttpRequest, change_id: UUID) -> HttpResponse:
    found = schedule_for(change_id)
    try:
        schedule_cancel(scheduled=found, actor=user_of(request))
        messages.success(request, f"Cancelled the scheduled change of {found.namespace.slug}.")
    except Conflict as problem:
        messages.error(request, words_of(problem))
    return redirect("admin_quota_schedules_page")


class DefaultsForm(QuotaForm):
    """The limits of a new namespace; `kind` says of which."""

    kind = forms.ChoiceField(choices=Kind.choices, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        return {**super().clean(), "kind": self.cleaned_data.get("kind", "")}


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def defaults(request: HttpRequest) -> HttpResponse:
    """The defaults of each kind of namespaces, each with its form."""
    sent = DefaultsForm(request.POST, prefix=_prefix(request)) if request.method == "POST" else None
    if sent is not None and sent.is_valid():
        kind = Kind(sent.cleaned_data["kind"])
        try:
            limits = sent.limits()
            defaults_set(kind=kind, limits=limits, reason=sent.cleaned_data["reason"], actor=user_of(request))
            messages.success(request, f"Saved the defaults of new {kind.label.lower()}. Others keep their limits.")
            return redirect("admin_quota_defaults_page")
        except DomainError as problem:
            show_in_form(sent, problem)
    kinds = [(one, _form_of(one, sent)) for one in defaults_shown()]
    context = {"kinds": kinds, "breadcrumbs": [(reverse("admin_quotas_page"), "Quotas")]}
    return render(request, "administration/quota_defaults.html", context, status=400 if sent else 200)


def _prefix(request: HttpRequest) -> str:
    return next((kind.value for kind in Kind if f"{kind.value}-kind" in request.POST), Kind.TEAM.value)


def _form_of(one: Any, sent: DefaultsForm | None) -> DefaultsForm:
    if sent is not None and sent.prefix == one.kind.value:
        return sent
    values = {**QuotaForm.values_of(Quota(**one.limits)), "kind": one.kind.value}
    return DefaultsForm(initial=values, prefix=one.kind.value)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/quotas/scheduled/", schedules, name="admin_quota_schedules_page"),
    path("admin/quotas/scheduled/<uuid:change_id>/cancel/", schedule_end, name="admin_quota_schedule_cancel"),
    path("admin/quotas/defaults/", defaults, name="admin_quota_defaults_page"),
]
