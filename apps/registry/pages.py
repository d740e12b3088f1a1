"""The pages of models: what jobs produced, and its files."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse

from apps.accounts.models import User
from apps.api.paging import page_of
from apps.audit.services import download_record
from apps.namespaces.context import current_namespace
from apps.registry.selectors import file_address, model_for, models_visible, stored_files
from apps.uploads.delivery import archive_response

ROWS = 50
_LONGEST_NAME = 200


@login_required
def models(request: HttpRequest) -> HttpResponse:
    """The models of the namespace, newest first; `?search=` in their names."""
    search = request.GET.get("search", "").strip()[: _LONGEST_NAME + 1]
    rows = models_visible(cast(User, request.user), namespace=str(current_namespace(request).pk))
    if search:
        rows = rows.filter(name__icontains=search)
    page = page_of(rows, request.GET.get("cursor"), ROWS)
    return render(request, "models/list.html", {"page": page, "search": search})


@login_required
def model(request: HttpRequest, model_id: UUID) -> HttpResponse:
    """One model with its files."""
    found = model_for(cast(User, request.user), model_id)
    files = sorted(found.files, key=lambda one: one["path"])
    way = [(reverse("models_page"), "Models")]
    return render(
        request, "models/model.html", {"model": found, "files": files, "breadcrumbs": way, "shell_id": str(found.pk)}
    )


@login_required
def model_file(request: HttpRequest, model_id: UUID) -> HttpResponse:
    """The bytes of `?path=`: a redirect to a short-lived address."""
    user = cast(User, request.user)
    found = model_for(user, model_id)
    address = file_address(found, request.GET.get("path", ""))
    download_record(user, "model", found.pk, found.namespace, name=found.name)
    return redirect(address)


@login_required
def model_archive(request: HttpRequest, model_id: UUID) -> StreamingHttpResponse:
    """All files of a model as one zip."""
    user = cast(User, request.user)
    found = model_for(user, model_id)
    download_record(user, "model", found.pk, found.namespace, name=found.name)
    return archive_response(request, f"{found.name}-{found.attempt}.zip", stored_files(found))


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("models/", models, name="models_page"),
    path("models/<uuid:model_id>/", model, name="model_page"),
    path("models/<uuid:model_id>/file/", model_file, name="model_file_page"),
    path("models/<uuid:model_id>/archive/", model_archive, name="model_archive_page"),
]
