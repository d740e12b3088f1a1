"""The pages of a namespace's data connections: a list with a form for another one, and one page for each with what was
found in its cluster. No cluster is asked from here: a worker does it."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.selectors import user_of
from apps.administration.connection_copy_pages import copying_of
from apps.administration.connection_uses import users_of_connection
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.connections import services
from apps.connections.models import DataConnection, State
from apps.connections.selectors import SECRETS, connection_named, connections_of
from apps.errors import DomainError, words_of
from apps.namespaces.context import role_within
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for
from apps.secrets.selectors import secret_names

AT_ONCE = 50
NONE = "None"
_CHANGE = (Role.MEMBER, Role.MANAGER)
_PARTS = {"connection-state": "connections/state.html", "connection-copies": "connections/copies.html"}
_TYPED = {"autocomplete": "off", "spellcheck": "false"}


class ConnectionForm(forms.Form):
    """Where the cluster is, and which secrets open it."""

    hosts = forms.CharField(
        label="Hosts", max_length=1_000,
        widget=forms.TextInput(attrs=_TYPED | {"placeholder": "ignite.example.org"}),
        help_text="Names or addresses of nodes, separated by commas. Add a port other than 10800 after a colon. "
        "A few nodes are enough: the others are discovered automatically.",
    )  # fmt: skip
    tls = forms.BooleanField(label="TLS", required=False)
    ca = forms.ChoiceField(
        label="CA", required=False, help_text="The CA that signed the certificates of the nodes, as PEM."
    )
    certificate = forms.ChoiceField(
        label="Certificate", required=False,
        help_text="PEM with its key, if the cluster requires one. Further certificates in it are CAs.",
    )  # fmt: skip
    certificate_password = forms.ChoiceField(label="Password of its key", required=False)
    username = forms.ChoiceField(label="User name", required=False)
    password = forms.ChoiceField(label="Password", required=False)

    def __init__(self, known: list[str], *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        for column in SECRETS:
            chosen = str(self[column].value() or "")
            names = known if not chosen or chosen in known else [*known, chosen]
            field = self.fields[column]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", NONE), *((one, one) for one in names)]


class NewConnectionForm(ConnectionForm):
    name = forms.CharField(
        label="Name", max_length=100,
        widget=forms.TextInput(attrs=_TYPED | {"placeholder": "cats"}),
        help_text="Letters, digits, dots, _ and -. Used in jobs.",
    )  # fmt: skip
    field_order = ("name",)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def connections(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """Which there are, and a form for a new one."""
    user, is_post = user_of(request), request.method == "POST"
    namespace = namespace_for(user, namespace_id, at_least=Role.MEMBER if is_post else Role.VIEWER)
    known = secret_names(namespace)
    form = NewConnectionForm(known, request.POST if is_post else None)
    if is_post and form.is_valid():
        values = dict(form.cleaned_data)
        name = values.pop("name")
        try:
            if connections_of(namespace).filter(name=name).exists():
                form.add_error("name", f"{name} already exists. Open it to change it.")
            else:
                services.connection_set(namespace=namespace, name=name, actor=user, values=values)
                messages.success(request, f"Data connection {name} registered. It is being checked.")
                return redirect("connection_page", namespace.pk, name)
        except DomainError as problem:
            show_in_form(form, problem)
    page = page_of(connections_of(namespace), request.GET.get("cursor"), AT_ONCE)
    context = _context(request, namespace) | {
        "breadcrumbs": _above(namespace), "page": page, "form": form, "secrets": known,
        "is_checking": any(one.state == State.CHECKING for one in page.rows),
    }  # fmt: skip
    part = request.headers.get("HX-Target") == "connection-rows"
    return render(request, "connections/rows.html" if part else "connections/connections.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def connection(request: HttpRequest, namespace_id: UUID, name: str) -> HttpResponse:
    """One of them, what the last check found, and a form that changes it."""
    user, is_post = user_of(request), request.method == "POST"
    namespace = namespace_for(user, namespace_id, at_least=Role.MEMBER if is_post else Role.VIEWER)
    found = connection_named(namespace, name)
    known = secret_names(namespace)
    now = {key: getattr(found, key) for key in ("hosts", "tls", *SECRETS)}
    form = ConnectionForm(known, request.POST if is_post else None, initial=now)
    if is_post and form.is_valid():
        try:
            services.connection_set(namespace=namespace, name=found.name, actor=user, values=form.cleaned_data)
        except DomainError as problem:
            show_in_form(form, problem)
        else:
            messages.success(request, f"Data connection {found.name} saved. It is being checked.")
            return redirect("connection_page", namespace.pk, found.name)
    context = _context(request, namespace) | {
        "breadcrumbs": [*_above(namespace), (reverse("connections_page", args=[namespace.pk]), "Data connections")],
        "connection": found, "form": form, "secrets": known, "is_being_changed": is_post,
        "job_lines": f"connection: {{name: {found.name}, cache: {_example(found)}}}",
        "script_line": "train = data.ignite(batch=64)",
        "secrets_used": [(form.fields[one].label, now[one]) for one in SECRETS if now[one]], **copying_of(found),
    }  # fmt: skip
    template = _PARTS.get(request.headers.get("HX-Target", ""), "connections/connection.html")
    return render(request, template, context)


@login_required
@require_POST
def connection_check(request: HttpRequest, namespace_id: UUID, name: str) -> HttpResponse:
    user = user_of(request)
    namespace = namespace_for(user, namespace_id, at_least=Role.MEMBER)
    try:
        services.connection_check_ask(connection=connection_named(namespace, name), actor=user)
    except DomainError as problem:
        messages.error(request, words_of(problem))
    return redirect("connection_page", namespace.pk, name)


@login_required
@require_POST
def connection_delete(request: HttpRequest, namespace_id: UUID, name: str) -> HttpResponse:
    user = user_of(request)
    namespace = namespace_for(user, namespace_id, at_least=Role.MEMBER)
    found: DataConnection = connection_named(namespace, name)
    force = request.POST.get("force") == "1"
    try:
        services.connection_delete(connection=found, actor=user, used_by=users_of_connection(found), force=force)
    except DomainError as problem:
        messages.error(request, words_of(problem))
        return redirect("connection_page", namespace.pk, name)
    messages.success(request, f"Data connection {found.name} deleted.")
    return redirect("connections_page", namespace.pk)


def _example(connection: DataConnection) -> str:
    """The name of a cache of it."""
    caches = (connection.found or {}).get("caches") or [{"name": "CACHE"}]
    return json.dumps(str(caches[0]["name"]), ensure_ascii=False)


def _above(namespace: Namespace) -> list[tuple[str, str]]:
    home = reverse("namespace_page", args=[namespace.pk])
    return [(reverse("namespaces_page"), "Namespaces"), (home, namespace.slug)]


def _context(request: HttpRequest, namespace: Namespace) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "may_change": role_within(request, namespace) in _CHANGE and namespace.closed_at is None,
        "allowed": sorted(
            {*settings.YARDMASTER_IGNITE_POLICY.hosts, *map(str, settings.YARDMASTER_IGNITE_POLICY.networks)}
        ),
    }


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("namespaces/<uuid:namespace_id>/connections/", connections, name="connections_page"),
    path("namespaces/<uuid:namespace_id>/connections/<str:name>/", connection, name="connection_page"),
    path(
        "namespaces/<uuid:namespace_id>/connections/<str:name>/check/", connection_check, name="connection_check_page"
    ),
    path(
        "namespaces/<uuid:namespace_id>/connections/<str:name>/delete/",
        connection_delete,
        name="connection_delete_page",
    ),
]
