"""Parts of a namespace's page that the page fetches: who uses what of it, and how its quota came to be what it is. Read
with the page they would make it slow. Not here: the page (`namespace_pages`)."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_safe

from apps.accounts.selectors import user_of
from apps.administration.quota_history import quota_changes
from apps.administration.usage import holdings_in
from apps.namespaces.selectors import namespace_for
from apps.uploads.storage_ledger import storage_by_kind
from apps.workbench.homes import homes_size


@login_required
@require_safe
def holders(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """Usage by user, stored data by kind, and the newest changes of the quota."""
    shown = namespace_for(user_of(request), namespace_id)
    context = {
        "namespace": shown,
        "holdings": holdings_in(shown),
        "storage_kinds": storage_by_kind(shown),
        "kept_by_jupyters": homes_size(shown),
        "quota_changes": quota_changes(shown),
    }
    return render(request, "namespaces/parts/holders.html", context)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("namespaces/<uuid:namespace_id>/holders/", holders, name="namespace_holders_part"),
]
