"""The pages of models: the list, a model with its versions, one version, and versions side by side. They only show;
what changes models is in `change_pages`.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils.http import urlencode

from apps.accounts.models import User
from apps.api.paging import page_of
from apps.audit.services import download_record
from apps.errors import NotFound
from apps.namespaces.context import current_namespace
from apps.namespaces.models import Role
from apps.namespaces.selectors import may
from apps.registry import selectors
from apps.registry.comparing import by_note, compare, metric_name, metric_value, named_version, tensor_words
from apps.registry.models import Model, ModelVersion
from apps.uploads.delivery import LARGE_ARCHIVE, archive_response
from apps.uploads.files_aside import files_aside
from apps.uploads.versioned.paging import files_page
from apps.uploads.versioned.selectors import download_url, file_for
from apps.uploads.versioned.services import MAX_NAME

ROWS = 50
VERSIONS = 20
CHANGES = 20
COLUMNS = 3
"""Metrics that the table of versions shows."""
METRICS = 50
_PAGES = {"dataset": "dataset_version_page", "model": "model_version_page"}
_FORMATS = {
    "saved_model": "SavedModel",
    "keras": "Keras (.keras)",
    "hdf5": "HDF5",
    "tflite": "LiteRT (.tflite)",
    "onnx": "ONNX",
    "checkpoint": "Checkpoint",
}


@dataclass(frozen=True)
class Metric:
    """One metric as pages show it."""

    name: str
    value: str
    step: int


@login_required
def models(request: HttpRequest) -> HttpResponse:
    """The models of the namespace, newest first; `?search=` in their names, `?deleted=1` those that can be restored."""
    user, namespace = cast(User, request.user), current_namespace(request)
    search = request.GET.get("search", "").strip()[: MAX_NAME + 1]
    deleted = selectors.deleted_models(user).filter(namespace=namespace)
    is_deleted = request.GET.get("deleted") == "1"
    rows = deleted if is_deleted else selectors.models_visible(user).filter(namespace=namespace)
    if search:
        rows = rows.filter(name__icontains=search)
    page = page_of(rows if is_deleted else selectors.with_versions(rows), request.GET.get("cursor"), ROWS)
    for one in [] if is_deleted else page.rows:
        one.note = next(iter(metrics_of(one.newest[0])), None) if one.newest else None
    context = {
        "page": page,
        "search": search,
        "is_deleted": is_deleted,
        "has_deleted": is_deleted or deleted.exists(),
        "may_change": is_deleted and may(user, namespace, Role.MEMBER),
    }
    return render(request, "models/list.html", context)


@login_required
def model(request: HttpRequest, model_id: UUID) -> HttpResponse:
    """One model with its versions, newest first, and the history of their stages."""
    user = cast(User, request.user)
    try:
        found = selectors.model_for(user, model_id)
    except NotFound:  # addresses of before led to what is a version now
        version = selectors.model_version_for(user, model_id)
        return redirect("model_version_page", version.pk)
    page = page_of(selectors.model_versions(found), request.GET.get("cursor"), VERSIONS)
    columns = _columns(page.rows)
    for one in page.rows:
        values = {metric_name(metric): metric_value(metric) for metric in one.metrics}
        one.cells = [(name, values.get(name, "")) for name in columns]
    context = {
        "model": found,
        "page": page,
        "columns": columns,
        "changes": list(selectors.stage_changes(found)[:CHANGES]),
        "deleted": list(selectors.deleted_versions(found)[:VERSIONS]),
        "may_change": may(user, found.namespace, Role.MEMBER),
        "breadcrumbs": way_to(),
    }
    return render(request, "models/model.html", context)


def _columns(versions: list[ModelVersion]) -> list[str]:
    """The metrics that people look at first, of all that the versions have."""
    every = {metric_name(metric): metric for version in versions for metric in version.metrics}
    return [metric_name(metric) for metric in by_note(list(every.values()))[:COLUMNS]]


@login_required
def model_version(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """One version: signatures, metrics, what it was made of, files."""
    user = cast(User, request.user)
    found = selectors.model_version_for(user, version_id)
    metrics = metrics_of(found)
    context = {
        "model": found.parent,
        "version": found,
        "title": f"{found.parent.name} version {found.number}",
        "format_words": _FORMATS.get((found.contents or {}).get("format", ""), "Other"),
        "signatures": _signatures(found),
        "metrics": metrics[:METRICS],
        "more_metrics": len(metrics) - METRICS,
        "code": _link(found.source.get("code"), "code_version_page"),
        "inputs": [_link(one, _PAGES[one.get("kind", "dataset")]) for one in found.source.get("inputs", [])],
        "page": files_page(found, request.GET.get("cursor", "")),
        "may_change": may(user, found.parent.namespace, Role.MEMBER),
        "breadcrumbs": way_to(found.parent),
        "is_large": found.size > LARGE_ARCHIVE,
        "reference": shlex.quote(f"{found.parent.name}@{found.number}"),
    }
    return render(request, "models/version.html", context)


def metrics_of(version: ModelVersion) -> list[Metric]:
    """Those first that people look at first."""
    return [Metric(metric_name(one), metric_value(one), one["step"]) for one in by_note(version.metrics)]


def _link(one: dict[str, Any] | None, page: str) -> dict[str, str] | None:
    """How a version that a model was made of is called, and its address. It may be deleted by now."""
    if not one:
        return None
    with suppress(NoReverseMatch):
        return {"words": named_version(one), "as": one.get("as", ""), "address": reverse(page, args=[one["version"]])}
    return {"words": named_version(one), "as": one.get("as", ""), "address": ""}


def _signatures(version: ModelVersion) -> list[dict[str, Any]]:
    return [
        {
            "name": one["name"],
            "method": one["method"],
            "tensors": [
                (side, tensor["name"], tensor_words(tensor))
                for side, tensors in (("Input", one["inputs"]), ("Output", one["outputs"]))
                for tensor in tensors
            ],
        }
        for one in (version.contents or {}).get("signatures", [])
    ]


@login_required
def model_compare(request: HttpRequest, model_id: UUID) -> HttpResponse:
    """Versions side by side: `?version=` twice or more; `?show=differences` leaves out what is the same."""
    found = selectors.model_for(cast(User, request.user), model_id)
    chosen = request.GET.getlist("version")
    versions = selectors.versions_numbered(found, chosen)
    parts = compare(versions)
    query = [("version", one.number) for one in versions]
    context = {
        "model": found,
        "versions": versions,
        "parts": parts,
        "differences": sum(part.differences for part in parts),
        "only_differences": request.GET.get("show") == "differences",
        "all_url": f"?{urlencode(query)}",
        "differences_url": f"?{urlencode([*query, ('show', 'differences')])}",
        "breadcrumbs": way_to(found),
    }
    return render(request, "models/compare.html", context)


@login_required
def model_file(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """The bytes of `?path=`: a redirect to a short-lived address."""
    user = cast(User, request.user)
    found = selectors.model_version_for(user, version_id)
    address = download_url(found, file_for(found, request.GET.get("path", "")).path)
    _note_download(user, found)
    return redirect(address)


@login_required
def model_archive(request: HttpRequest, version_id: UUID) -> StreamingHttpResponse:
    """All files of a version as one zip."""
    user = cast(User, request.user)
    found = selectors.model_version_for(user, version_id)
    _note_download(user, found)
    files = files_aside(found.upload_id, found.key_prefix)
    return archive_response(request, f"{found.parent.name}-{found.number}.zip", files)


def way_to(model: Model | None = None) -> list[tuple[str, str]]:
    """The breadcrumbs above a page below the list, or below one model."""
    way = [(reverse("models_page"), "Models")]
    return [*way, (reverse("model_page", args=[model.pk]), model.name)] if model else way


def _note_download(user: User, version: ModelVersion) -> None:
    model = version.parent
    download_record(user, "model", model.pk, model.namespace, name=model.name, version=version.number)
