"""The pages of models: the list, a model with its versions, a version with its files."""

from __future__ import annotations

from itertools import islice
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
from apps.registry.models import ModelVersion
from apps.registry.selectors import MODELS, model_for, model_version_for, model_versions, models_visible
from apps.uploads.delivery import archive_response
from apps.uploads.versioned.selectors import download_url, file_for, files_in, files_of, with_newest
from apps.uploads.versioned.services import MAX_NAME

ROWS = 50
FILES_SHOWN = 500


@login_required
def models(request: HttpRequest) -> HttpResponse:
    """The models of the namespace, newest first; `?search=` in their names."""
    search = request.GET.get("search", "").strip()[: MAX_NAME + 1]
    rows = models_visible(cast(User, request.user), namespace=str(current_namespace(request).pk))
    if search:
        rows = rows.filter(name__icontains=search)
    page = page_of(with_newest(MODELS, rows), request.GET.get("cursor"), ROWS)
    return render(request, "models/list.html", {"page": page, "search": search})


@login_required
def model(request: HttpRequest, model_id: UUID) -> HttpResponse:
    """One model with its versions."""
    found = model_for(cast(User, request.user), model_id)
    versions = list(model_versions(found)[:ROWS])
    way = [(reverse("models_page"), "Models")]
    return render(request, "models/model.html", {"model": found, "versions": versions, "breadcrumbs": way})


@login_required
def model_version(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """One version with its files."""
    found = model_version_for(cast(User, request.user), version_id)
    way = [(reverse("models_page"), "Models"), (reverse("model_page", args=[found.parent.pk]), found.parent.name)]
    context = {
        "model": found.parent,
        "version": found,
        "files": list(islice(files_in(found), FILES_SHOWN)),
        "breadcrumbs": way,
        "shell_id": str(found.pk),
    }
    return render(request, "models/version.html", context)


@login_required
def model_file(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """The bytes of `?path=`: a redirect to a short-lived address."""
    user = cast(User, request.user)
    found = model_version_for(user, version_id)
    address = download_url(found, file_for(found, request.GET.get("path", "")).path)
    _note_download(user, found)
    return redirect(address)


@login_required
def model_archive(request: HttpRequest, version_id: UUID) -> StreamingHttpResponse:
    """All files of a version as one zip."""
    user = cast(User, request.user)
    found = model_version_for(user, version_id)
    _note_download(user, found)
    return archive_response(request, f"{found.parent.name}-{found.number}.zip", list(files_of(found)))


def _note_download(user: User, version: ModelVersion) -> None:
    model = version.parent
    download_record(user, "model", model.pk, model.namespace, name=model.name, version=version.number)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("models/", models, name="models_page"),
    path("models/<uuid:model_id>/", model, name="model_page"),
    path("model-versions/<uuid:version_id>/", model_version, name="model_version_page"),
    path("model-versions/<uuid:version_id>/file/", model_file, name="model_file_page"),
    path("model-versions/<uuid:version_id>/archive/", model_archive, name="model_archive_page"),
]
