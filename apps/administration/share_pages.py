"""The page of shares: the tree of groups and namespaces, how the shares are now, and changing them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.administration import shares
from apps.api.problems import show_in_form
from apps.errors import DomainError, Invalid, NotFound, words_of
from apps.jobs.engines.configured import engine_names
from apps.namespaces.models import Namespace, ShareNode
from apps.namespaces.selectors import namespace_for
from apps.namespaces.share_models import HEAVIEST, LONGEST_NAME
from yardmaster.errors import Problem
from yardmaster.quantity import NotAQuantity, exact_bytes, format_amount, parse_memory

_SELECT = {"class": "form-select"}


def _input(kind: type[forms.Widget] = forms.TextInput, **attrs: Any) -> forms.Widget:
    return kind(attrs={"class": "form-control", "autocomplete": "off", **attrs})


class NodeForm(forms.Form):
    """What can be changed of a node: a group's, or the place of a namespace."""

    parent = forms.ChoiceField(label="Within the group", required=False, widget=forms.Select(attrs=_SELECT))
    weight = forms.IntegerField(
        label="Weight", min_value=0, max_value=HEAVIEST, initial=1, widget=_input(forms.NumberInput),
        help_text="Twice the weight is twice the share. 0: only what others leave idle.",
    )  # fmt: skip
    cpu = forms.FloatField(
        label="Guaranteed CPU cores", min_value=0, required=False, widget=_input(forms.NumberInput, step="any")
    )
    memory = forms.CharField(
        label="Guaranteed memory", max_length=20, required=False, widget=_input(placeholder="64Gi")
    )
    gpus = forms.IntegerField(label="Guaranteed GPUs", min_value=0, required=False, widget=_input(forms.NumberInput))
    reason = forms.CharField(
        label="Reason", max_length=shares.LONGEST_REASON, widget=_input(), help_text="Kept in the audit log."
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        names = ShareNode.objects.filter(namespace=None).order_by("name").values_list("name", flat=True)
        self.fields["parent"].choices = [("", "None: at the top"), *((one, one) for one in names)]  # type: ignore[attr-defined]

    def clean_memory(self) -> int | None:
        try:
            return parse_memory(self.cleaned_data["memory"]) if self.cleaned_data["memory"] else None
        except NotAQuantity as error:
            raise ValidationError(str(error).capitalize() + ".", code="invalid") from error

    def said(self, others: dict[str, float] | None = None) -> shares.Said:
        """Raises `Invalid` where the group is not there. `others`: guarantees of what the form does not show."""
        given = self.cleaned_data
        named = {name: given[name] for name in ("cpu", "memory", "gpus") if given.get(name)}
        guaranteed = {**(others or {}), **named}
        parent = shares.group_named(given["parent"])
        return shares.Said(parent, given["weight"], guaranteed, bool(given.get("is_default")))


class GroupForm(NodeForm):
    """A group. Its name stays."""

    is_default = forms.BooleanField(
        label="Default group: namespaces that are in no group belong to it", required=False,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )  # fmt: skip


class NewGroupForm(GroupForm):
    name = forms.CharField(label="Name", max_length=LONGEST_NAME, widget=_input())
    field_order = ("name",)


class PlaceForm(NodeForm):
    namespace = forms.CharField(label="Namespace", max_length=63, widget=_input(), help_text="Its slug or ID.")
    field_order = ("namespace",)


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def shares_page(request: HttpRequest) -> HttpResponse:
    """The tree, a form for a new group, and one that puts a namespace into one."""
    what = request.POST.get("what") if request.method == "POST" else None
    group = NewGroupForm(request.POST if what == "group" else None, prefix="g", auto_id="group-%s")
    place = PlaceForm(request.POST if what == "namespace" else None, prefix="n", auto_id="place-%s")
    form = {"group": group, "namespace": place}.get(what or "")
    if form is not None and form.is_valid():
        try:
            messages.success(request, _made(request, form))
            return redirect("admin_shares_page")
        except DomainError as problem:
            show_in_form(form, problem)
    engines = engine_names()
    engine = request.GET.get("engine", "")
    engine = engine if engine in engines else (engines[0] if engines else "")
    rows = [_shown(one) for one in shares.rows_of(engine)]
    context = {
        "rows": rows, "engine": engine, "engines": engines,
        "forms": [("group", "Add group", group), ("namespace", "Add namespace", place)],
    }  # fmt: skip
    return render(request, "administration/shares.html", context, status=400 if form is not None else 200)


def _made(request: HttpRequest, form: NodeForm) -> str:
    given, actor = form.cleaned_data, user_of(request)
    if isinstance(form, PlaceForm):
        try:
            namespace: Namespace = namespace_for(actor, given["namespace"])
        except NotFound as error:
            message = "There is no such namespace."
            raise Invalid([Problem("namespace", "unknown", message, "Write its slug.", given["namespace"])]) from error
        shares.namespace_place(namespace=namespace, said=form.said(), reason=given["reason"], actor=actor)
        return f"Placed {namespace.slug}."
    shares.group_create(name=given["name"], said=form.said(), reason=given["reason"], actor=actor)
    return f"Added the group {given['name']}."


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def share_page(request: HttpRequest, node_id: UUID) -> HttpResponse:
    """Change one node."""
    node = shares.node_for(node_id)
    kind = NodeForm if node.namespace else GroupForm
    form = kind(request.POST if request.method == "POST" else None, initial=_initial(node))
    if request.method == "POST" and form.is_valid():
        others = {key: one for key, one in node.guaranteed.items() if key not in ("cpu", "memory", "gpus")}
        try:
            reason = form.cleaned_data["reason"]
            shares.node_change(node=node, said=form.said(others), reason=reason, actor=user_of(request))
            messages.success(request, f"Changed {_name(node)}.")
            return redirect("admin_shares_page")
        except DomainError as problem:
            show_in_form(form, problem)
    context = {
        "form": form, "node": node, "name": _name(node),
        "breadcrumbs": [(reverse("admin_shares_page"), "Shares")],
    }  # fmt: skip
    return render(request, "administration/share.html", context, status=400 if form.errors else 200)


@administrators_only
@require_POST
def share_remove(request: HttpRequest, node_id: UUID) -> HttpResponse:
    node = shares.node_for(node_id)
    try:
        shares.node_remove(node=node, reason=request.POST.get("reason", ""), actor=user_of(request))
        messages.success(request, f"Removed {_name(node)} from the tree.")
    except DomainError as problem:
        messages.error(request, words_of(problem))
    return redirect("admin_shares_page")


def _name(node: ShareNode) -> str:
    return node.namespace.slug if node.namespace else node.name


def _initial(node: ShareNode) -> dict[str, Any]:
    memory = node.guaranteed.get("memory")
    return {
        "parent": node.parent.name if node.parent else "", "weight": node.weight, "is_default": node.is_default,
        "cpu": node.guaranteed.get("cpu"), "gpus": node.guaranteed.get("gpus"),
        "memory": exact_bytes(memory) if memory else "",
    }  # fmt: skip


_NAMES = {"cpu": "CPU", "memory": "memory", "gpus": "GPUs"}


def _shown(row: shares.Row) -> dict[str, Any]:
    node, share = row.node, row.share
    guaranteed = {} if node is None else node.guaranteed
    return {
        "node": node,
        "depth": row.depth,
        "name": "All other namespaces" if node is None else _name(node),
        "is_group": node is not None and node.namespace is None,
        "weight": 1 if node is None else node.weight,
        "guaranteed": ", ".join(f"{format_amount(key, one)} {_NAMES.get(key, key)}" for key, one in guaranteed.items()),
        "used": None if share is None else round(share.used * 100),
        "fair": None if share is None else round(share.fair * 100),
        "is_over": share is not None and share.used > share.fair,
    }


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/shares/", shares_page, name="admin_shares_page"),
    path("admin/shares/<uuid:node_id>/", share_page, name="admin_share_page"),
    path("admin/shares/<uuid:node_id>/remove/", share_remove, name="admin_share_remove"),
]
