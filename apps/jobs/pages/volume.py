"""The page of a dataset version on the data volume of its namespace: whether it is there, and buttons to publish and to
remove it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import DATASETS
from apps.errors import DomainError, words_of
from apps.jobs.models import Volume
from apps.jobs.state.volumes import volumes_of, with_amounts
from apps.jobs.volume_copies import bytes_on, copies_of, copy_of, version_publish, version_unpublish
from apps.namespaces.models import Role
from apps.namespaces.selectors import may
from apps.uploads.versioned.selectors import version_for
from yardmaster.errors import SpecRejected, YardmasterError


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def volume_page(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """Where it is; POST publishes or removes it on one engine."""
    user = user_of(request)
    version = version_for(DATASETS, user, version_id)
    if request.method == "POST":
        _change(request, user, version)
        return redirect("dataset_volume_page", version.pk)
    return render(request, "datasets/volume.html", _context(user, version))


def _change(request: HttpRequest, user: User, version: DatasetVersion) -> None:
    engine = request.POST.get("engine", "")
    try:
        if request.POST.get("action") == "remove":
            version_unpublish(user=user, copy=copy_of(version, engine))
            messages.success(request, "The version is being removed from the volume.")
        else:
            version_publish(user=user, version=version, engine=engine)
            messages.success(request, "The version is being published. Jobs can read it there when that is done.")
    except SpecRejected as error:
        messages.error(request, " ".join(f"{one.message} {one.remedy}" for one in error.problems))
    except (DomainError, YardmasterError) as error:
        messages.error(request, words_of(error))


def _context(user: User, version: DatasetVersion) -> dict[str, Any]:
    item = version.parent
    copies = {one.volume_id: one for one in copies_of(version)}
    volumes = with_amounts(volumes_of(item.namespace)).filter(kind=Volume.Kind.DATA.value)
    rows = [
        {"volume": one, "copy": copies.get(one.pk), "left": max(0, one.size - bytes_on(one))}
        for one in volumes
        if not one.goes or one.pk in copies
    ]
    return {
        "version": version,
        "item": item,
        "rows": rows,
        "may_change": may(user, item.namespace, Role.MEMBER) and item.namespace.closed_at is None,
        "breadcrumbs": [
            (reverse("datasets_page"), "Datasets"),
            (f"{reverse('dataset_page', args=[item.pk])}?version={version.number}", item.name),
        ],
    }


urlpatterns: list[URLPattern | URLResolver] = [
    path("datasets/versions/<uuid:version_id>/volume/", volume_page, name="dataset_volume_page"),
]
