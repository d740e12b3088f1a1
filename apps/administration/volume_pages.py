"""The page of a namespace's volumes: which there are, how each is, what is on it, and forms for managers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.selectors import user_of
from apps.api.problems import show_in_form
from apps.datasets.models import DatasetVersion
from apps.errors import DomainError, words_of
from apps.jobs.engines.volumes import (
    engines_with_volumes,
    size_by_default,
    volume_create,
    volume_delete,
    volume_in,
    volume_resize,
)
from apps.jobs.models import Volume, VolumeCopy
from apps.jobs.state.volumes import volumes_of, with_amounts
from apps.jobs.volume_copies import bytes_on, copy_on, leftovers_remove, version_unpublish
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import may, namespace_for
from apps.uploads.storage_ledger import storage_left
from yardmaster.errors import YardmasterError
from yardmaster.job.volumes import VolumeKind
from yardmaster.quantity import NotAQuantity, exact_bytes, format_bytes, parse_memory

MOST_SHOWN = 100
_KINDS = ((Volume.Kind.DATA.value, "Data volume"), (Volume.Kind.LOG.value, "Log volume"))


class SizeForm(forms.Form):
    size = forms.CharField(
        label="Size", max_length=20, help_text="Such as 100Gi. Counts against the storage quota.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off", "placeholder": "100Gi"}),
    )  # fmt: skip

    def clean_size(self) -> int | None:
        """Bytes, as people write them. None where it may be left empty, and is."""
        try:
            return parse_memory(self.cleaned_data["size"]) if self.cleaned_data["size"] else None
        except NotAQuantity as error:
            raise ValidationError(str(error).capitalize() + ".", code="invalid") from error


class NewVolumeForm(SizeForm):
    """`default` is the size of a volume where none is given; None where one must be."""

    kind = forms.ChoiceField(
        label="Kind", choices=_KINDS, widget=forms.Select(attrs={"class": "form-select"}),
        help_text="Data: datasets that jobs read in place. Log: log directories of jobs.",
    )  # fmt: skip
    engine = forms.ChoiceField(label="Engine", widget=forms.Select(attrs={"class": "form-select"}))
    field_order = ("kind", "engine", "size")

    def __init__(self, *args: Any, default: int | None, **options: Any) -> None:
        super().__init__(*args, **options)
        if default is not None:
            size = self.fields["size"]
            size.required = False
            size.help_text = "Such as 100Gi. Counts against the storage quota. Empty: all that is left of it."
            size.widget.attrs["placeholder"] = exact_bytes(default)
        self.fields["engine"].choices = [(one, one) for one in engines_with_volumes()]  # type: ignore[attr-defined]


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def volumes(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """Which there are, and a form for a new one."""
    user, is_post = user_of(request), request.method == "POST"
    namespace = namespace_for(user, namespace_id, at_least=Role.MANAGER if is_post else Role.VIEWER)
    form = NewVolumeForm(request.POST if is_post else None, default=size_by_default(namespace))
    if is_post and form.is_valid():
        said = form.cleaned_data
        try:
            made = volume_create(
                namespace=namespace, engine=said["engine"], kind=VolumeKind(said["kind"]), size=said["size"], actor=user
            )
            messages.success(request, f"The {made.kind} volume of {format_bytes(made.size)} is being created.")
            return redirect("volumes_page", namespace.pk)
        except DomainError as problem:
            show_in_form(form, problem)
    return _page(request, namespace, form)


@login_required
@require_POST
def resize(request: HttpRequest, namespace_id: UUID, volume_id: UUID) -> HttpResponse:
    user = user_of(request)
    volume = volume_in(namespace_for(user, namespace_id, at_least=Role.MANAGER), volume_id)
    form = SizeForm(request.POST)
    with _refusal_said(request):
        if form.is_valid():
            volume_resize(volume=volume, size=form.cleaned_data["size"], actor=user)
            messages.success(request, f"The {volume.kind} volume is being enlarged.")
        else:
            messages.error(request, " ".join(str(one) for errors in form.errors.values() for one in errors))
    return redirect("volumes_page", namespace_id)


@login_required
@require_POST
def delete(request: HttpRequest, namespace_id: UUID, volume_id: UUID) -> HttpResponse:
    user = user_of(request)
    volume = volume_in(namespace_for(user, namespace_id, at_least=Role.MANAGER), volume_id)
    with _refusal_said(request):
        volume_delete(volume=volume, actor=user)
        messages.success(request, f"The {volume.kind} volume is being removed.")
    return redirect("volumes_page", namespace_id)


@login_required
@require_POST
def clean(request: HttpRequest, namespace_id: UUID, volume_id: UUID) -> HttpResponse:
    """Launch the job that removes what deleted jobs left on a log volume."""
    user = user_of(request)
    volume = volume_in(namespace_for(user, namespace_id, at_least=Role.MANAGER), volume_id)
    with _refusal_said(request):
        leftovers_remove(user=user, volume=volume)
        messages.success(request, "The log directories of deleted jobs are being removed.")
    return redirect("volumes_page", namespace_id)


@login_required
@require_POST
def remove(request: HttpRequest, namespace_id: UUID, volume_id: UUID, version_id: UUID) -> HttpResponse:
    """Launch the job that removes a version from a data volume."""
    user = user_of(request)
    volume = volume_in(namespace_for(user, namespace_id, at_least=Role.MEMBER), volume_id)
    with _refusal_said(request):
        version_unpublish(user=user, copy=copy_on(volume, version_id))
        messages.success(request, "The version is being removed from the volume.")
    return redirect("volumes_page", namespace_id)


@contextmanager
def _refusal_said(request: HttpRequest) -> Iterator[None]:
    """What is refused within is a message of the next page."""
    try:
        yield
    except (DomainError, YardmasterError) as error:
        messages.error(request, words_of(error))


def _page(request: HttpRequest, namespace: Namespace, form: NewVolumeForm) -> HttpResponse:
    copies = list(VolumeCopy.objects.filter(volume__namespace=namespace).order_by("dataset", "-number"))
    known = set(DatasetVersion.objects.filter(pk__in=[one.version for one in copies]).values_list("pk", flat=True))
    rows = [
        {
            "volume": one,
            "title": dict(_KINDS)[one.kind],
            "state": "going" if one.goes else one.phase,
            "published": bytes_on(one),
            "leftovers": one.leftover_count,  # type: ignore[attr-defined]
            "copies": [(copy, copy.version in known) for copy in copies if copy.volume_id == one.pk][:MOST_SHOWN],
        }
        for one in with_amounts(volumes_of(namespace)).select_related("created_by")
    ]
    context = {
        "namespace": namespace,
        "breadcrumbs": [
            (reverse("namespaces_page"), "Namespaces"),
            (reverse("namespace_page", args=[namespace.pk]), namespace.slug),
        ],
        "rows": rows,
        "form": form,
        "is_offered": bool(engines_with_volumes()),
        "left": storage_left(namespace),
        "may_change": may(user_of(request), namespace, Role.MANAGER) and namespace.closed_at is None,
        "may_remove": may(user_of(request), namespace, Role.MEMBER) and namespace.closed_at is None,
    }
    return render(request, "namespaces/volumes.html", context, status=400 if form.errors else 200)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("namespaces/<uuid:namespace_id>/volumes/", volumes, name="volumes_page"),
    path("namespaces/<uuid:namespace_id>/volumes/<uuid:volume_id>/resize/", resize, name="volume_resize"),
    path("namespaces/<uuid:namespace_id>/volumes/<uuid:volume_id>/clean/", clean, name="volume_clean_page"),
    path(
        "namespaces/<uuid:namespace_id>/volumes/<uuid:volume_id>/versions/<uuid:version_id>/remove/",
        remove,
        name="volume_version_remove",
    ),
    path("namespaces/<uuid:namespace_id>/volumes/<uuid:volume_id>/delete/", delete, name="volume_delete"),
]
