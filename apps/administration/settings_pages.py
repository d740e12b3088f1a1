"""The page of the settings in force, for administrators. Changing them: the environment of the portal's processes."""

from __future__ import annotations

from itertools import groupby

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_safe

from apps.accounts.administrators import administrators_only
from apps.administration.settings_table import risks, settings_shown

_LONGEST_SEARCH = 100


@administrators_only
@require_safe
def settings_in_force(request: HttpRequest) -> HttpResponse:
    search = request.GET.get("search", "").strip()[:_LONGEST_SEARCH]
    changed = request.GET.get("changed") == "yes"
    rows = settings_shown(search, changed)
    groups = [(part, list(found)) for part, found in groupby(rows, key=lambda one: one.part)]
    context = {"groups": groups, "count": len(rows), "search": search, "changed": changed, "risks": risks()}
    return render(request, "administration/settings.html", context)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/settings/", settings_in_force, name="admin_settings_page"),
]
