"""The first page of the admin area: how much there is of what, and what keeps jobs from starting."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_safe

from apps.accounts.administrators import administrators_only
from apps.administration.overview import MOST_HOLDS, figures, holds_shown


@administrators_only
@require_safe
def admin(request: HttpRequest) -> HttpResponse:
    context = {"figures": figures(), "holds": holds_shown(), "most_holds": MOST_HOLDS}
    return render(request, "administration/overview.html", context)


pages_urlpatterns: list[URLPattern | URLResolver] = [path("admin/", admin, name="admin_page")]
