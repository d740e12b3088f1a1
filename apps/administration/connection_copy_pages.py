"""The forms of copies from data connections into datasets, on the page of the connection, and what it shows of them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_POST

from apps.accounts.selectors import user_of
from apps.connections.models import DataConnection
from apps.connections.selectors import connection_named
from apps.datasets.connection_copies import LONGEST_QUERY, copies_of, copy_ask, copy_cancel, copy_of, version_copied
from apps.datasets.models import ConnectionCopy
from apps.errors import DomainError, words_of
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from yardmaster.job.spec_connection import LONGEST_CACHE

SHOWN = 5
_TYPED = {"autocomplete": "off", "spellcheck": "false"}


class CopyForm(forms.Form):
    """What is copied, and where to."""

    cache = forms.CharField(
        label="Cache", max_length=LONGEST_CACHE, required=False, widget=forms.TextInput(attrs=_TYPED),
        help_text="All of its rows are copied.",
    )  # fmt: skip
    query = forms.CharField(
        label="Or an SQL query", max_length=LONGEST_QUERY, required=False,
        widget=forms.Textarea(attrs=_TYPED | {"rows": 3, "placeholder": "SELECT … FROM …"}),
    )  # fmt: skip
    dataset = forms.CharField(
        label="Dataset", max_length=100, widget=forms.TextInput(attrs=_TYPED),
        help_text="The rows become its next version. If it does not exist, it is created.",
    )  # fmt: skip


def copying_of(connection: DataConnection) -> dict[str, Any]:
    """The form, and the newest copies with their versions, as the page of the connection shows them."""
    rows = list(copies_of(connection.namespace, connection.name).order_by("-started_at", "-pk")[:SHOWN])
    return {
        "copy_form": _form_for(connection),
        "copies": [(one, version_copied(one)) for one in rows],
        "is_copying": any(one.state == ConnectionCopy.State.COPYING for one in rows),
    }


def _form_for(connection: DataConnection) -> CopyForm:
    form = CopyForm(auto_id="copy_%s")
    caches = (connection.found or {}).get("caches") or [{"name": "IMAGES"}]
    form.fields["cache"].widget.attrs["placeholder"] = str(caches[0]["name"])
    return form


@login_required
@require_POST
def connection_copy(request: HttpRequest, namespace_id: UUID, name: str) -> HttpResponse:
    """Begin a copy."""
    user = user_of(request)
    namespace = namespace_for(user, namespace_id, at_least=Role.MEMBER)
    found, form = connection_named(namespace, name), CopyForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"{next(iter(form.errors))}: {next(iter(form.errors.values()))[0]}")
        return redirect("connection_page", namespace.pk, name)
    try:
        copy_ask(namespace=namespace, connection=found.name, actor=user, **form.cleaned_data)
    except DomainError as problem:
        messages.error(request, words_of(problem))
    else:
        messages.success(request, f"Started the copy to {form.cleaned_data['dataset']}.")
    return redirect("connection_page", namespace.pk, name)


@login_required
@require_POST
def connection_copy_cancel(request: HttpRequest, namespace_id: UUID, name: str, copy_id: UUID) -> HttpResponse:
    user = user_of(request)
    namespace = namespace_for(user, namespace_id, at_least=Role.MEMBER)
    ended = copy_cancel(copy=copy_of(namespace, name, copy_id), actor=user)
    if ended.state == ConnectionCopy.State.CANCELLED:
        messages.success(request, f"Cancelled the copy to {ended.dataset}.")
    else:
        messages.error(request, f"The copy to {ended.dataset} has already ended.")
    return redirect("connection_page", namespace.pk, name)


_CONNECTION = "namespaces/<uuid:namespace_id>/connections/<str:name>/"
pages_urlpatterns: list[URLPattern | URLResolver] = [
    path(f"{_CONNECTION}copy/", connection_copy, name="connection_copy_page"),
    path(f"{_CONNECTION}copies/<uuid:copy_id>/cancel/", connection_copy_cancel, name="connection_copy_cancel_page"),
]
