"""The pages that change models: renaming, stages, deleting and restoring; and the addresses of all pages of models."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_POST

from apps.accounts.models import User
from apps.api.problems import status_of
from apps.errors import DomainError, Invalid
from apps.namespaces.models import Role
from apps.registry import deletion, pages, selectors
from apps.registry.models import Model, ModelVersion, Stage
from apps.registry.selectors import MODELS
from apps.registry.stages import stage_set
from apps.uploads.versioned.pages import EditPage, Words, sentence_of
from yardmaster.errors import Problem

WORDS = Words(
    title="Models", noun="model", icon="cube", command="yardmaster models", launch_key="", list_page="models_page",
    page="model_page", upload_page="", edit_page="model_edit_page", delete_page="model_delete_page", api="models",
)  # fmt: skip


class ModelEditPage(EditPage):
    """Renaming and describing a model."""

    store = MODELS
    words = WORDS


@login_required
@require_POST
def model_version_stage(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """Give the version the `stage` that was chosen."""
    user = cast(User, request.user)
    version = selectors.model_version_for(user, version_id, at_least=Role.MEMBER)
    wanted = request.POST.get("stage", "")
    if wanted not in Stage.values:
        raise Invalid([Problem("stage", "invalid", "There is no such stage.", "Reload the page.", wanted[:100])])
    stage = Stage(wanted)
    note = request.POST.get("note", "").strip()[:1_000]
    try:
        stage_set(version, stage, actor=user, note=note)
    except DomainError as problem:
        messages.error(request, sentence_of(problem))
    else:
        where = f"is now in {stage.value}" if stage in ("staging", "production") else "is now archived"
        words = "has no stage now" if stage is Stage.NONE else where
        messages.success(request, f"Version {version.number} of {version.parent.name} {words}.")
    if request.POST.get("back") == "model":
        return redirect("model_page", version.parent_id)
    return redirect("model_version_page", version.pk)


@login_required
def model_delete(request: HttpRequest, model_id: UUID) -> HttpResponse:
    """Delete a model with all its versions, at once or after the grace period."""
    user = cast(User, request.user)
    found = selectors.any_model_for(user, model_id, at_least=Role.MEMBER)
    if request.method == "POST":
        is_now = request.POST.get("when") == "now"
        try:
            deletion.model_delete(found, actor=user, now_for_good=is_now)
        except DomainError as problem:
            return _delete_form(request, found, None, problem)
        _say_deleted(request, found.name, is_now=is_now)
        return redirect("models_page")
    return _delete_form(request, found, None)


@login_required
def model_version_delete(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """Delete one version, in the same way."""
    user = cast(User, request.user)
    version = selectors.any_version_for(user, version_id, at_least=Role.MEMBER)
    if request.method == "POST":
        is_now = request.POST.get("when") == "now"
        try:
            deletion.version_delete(version, actor=user, now_for_good=is_now)
        except DomainError as problem:
            return _delete_form(request, version.parent, version, problem)
        _say_deleted(request, f"Version {version.number} of {version.parent.name}", is_now=is_now)
        return redirect("model_page", version.parent_id)
    return _delete_form(request, version.parent, version)


def _delete_form(
    request: HttpRequest, model: Model, version: ModelVersion | None, problem: DomainError | None = None
) -> HttpResponse:
    context = {
        "model": model,
        "version": version,
        "count": model.versions.count(),
        "is_deleted": (version or model).deleted_at is not None,
        "removed_at": (version or model).removed_at,
        "grace": settings.YARDMASTER_MODEL_GRACE.total_seconds(),
        "fault": sentence_of(problem) if problem else "",
        "breadcrumbs": pages.way_to() if model.deleted_at else pages.way_to(model),
    }
    return render(request, "models/delete.html", context, status=status_of(problem) if problem else 200)


def _say_deleted(request: HttpRequest, what: str, *, is_now: bool) -> None:
    rest = "Its files are being removed." if is_now else "It can be restored until its grace period is over."
    messages.success(request, f"{what} has been deleted. {rest}")


@login_required
@require_POST
def model_restore(request: HttpRequest, model_id: UUID) -> HttpResponse:
    """Show a deleted model again."""
    user = cast(User, request.user)
    found = selectors.any_model_for(user, model_id, at_least=Role.MEMBER)
    try:
        deletion.model_restore(found, actor=user)
    except DomainError as problem:
        messages.error(request, sentence_of(problem))
        return redirect("models_page")
    messages.success(request, f"{found.name} has been restored.")
    return redirect("model_page", found.pk)


@login_required
@require_POST
def model_version_restore(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """Show a deleted version again."""
    user = cast(User, request.user)
    version = selectors.any_version_for(user, version_id, at_least=Role.MEMBER)
    deletion.version_restore(version, actor=user)
    messages.success(request, f"Version {version.number} of {version.parent.name} has been restored.")
    return redirect("model_version_page", version.pk)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("models/", pages.models, name="models_page"),
    path("models/<uuid:model_id>/", pages.model, name="model_page"),
    path("models/<uuid:model_id>/compare/", pages.model_compare, name="model_compare_page"),
    path("models/<uuid:collection_id>/edit/", ModelEditPage.as_view(), name="model_edit_page"),
    path("models/<uuid:model_id>/delete/", model_delete, name="model_delete_page"),
    path("models/<uuid:model_id>/restore/", model_restore, name="model_restore_page"),
    path("model-versions/<uuid:version_id>/", pages.model_version, name="model_version_page"),
    path("model-versions/<uuid:version_id>/stage/", model_version_stage, name="model_version_stage_page"),
    path("model-versions/<uuid:version_id>/delete/", model_version_delete, name="model_version_delete_page"),
    path("model-versions/<uuid:version_id>/restore/", model_version_restore, name="model_version_restore_page"),
    path("model-versions/<uuid:version_id>/file/", pages.model_file, name="model_file_page"),
    path("model-versions/<uuid:version_id>/archive/", pages.model_archive, name="model_archive_page"),
]
