"""The page of retention: the rules, a form with a preview before a rule is saved, and what was removed lately."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.administration import retention
from apps.administration.retention import RuleFacts
from apps.api.problems import show_in_form
from apps.errors import DomainError, Invalid, NotFound
from apps.jobs.models import RetentionRule
from apps.namespaces.models import is_uuid
from apps.namespaces.quota_models import LONGEST_REASON
from apps.namespaces.selectors import namespace_for
from yardmaster.errors import Problem
from yardmaster.lifecycle.retention import LONGEST_DAYS, MOST_NEWEST, Kind

KINDS = {
    Kind.LOGS: "Logs",
    Kind.FILES: "Files (outputs, event files, checkpoints)",
    Kind.JOBS: "Whole jobs, with logs and files",
}
_BACK = "admin_retention_page"


def _input(kind: type[forms.Widget] = forms.TextInput, **attrs: Any) -> forms.Widget:
    return kind(attrs={"class": "form-control", "autocomplete": "off", **attrs})


def _check() -> forms.Widget:
    return forms.CheckboxInput(attrs={"class": "form-check-input"})


class ReasonForm(forms.Form):
    reason = forms.CharField(
        label="Reason", max_length=LONGEST_REASON, widget=_input(), help_text="Kept in the audit log."
    )


class RuleForm(ReasonForm):
    kind = forms.ChoiceField(
        label="What", choices=[(kind.value, words) for kind, words in KINDS.items()],
        widget=forms.Select(attrs={"class": "form-select"}),
    )  # fmt: skip
    namespace = forms.CharField(
        label="Namespace", max_length=63, required=False, widget=_input(),
        help_text="Its slug or ID, for a rule that replaces the portal's there. Empty: the rule of the portal.",
    )  # fmt: skip
    days = forms.IntegerField(
        label="Days after the end of the job", min_value=1, max_value=LONGEST_DAYS, required=False,
        widget=_input(forms.NumberInput), help_text="Empty: kept for ever.",
    )  # fmt: skip
    newest = forms.IntegerField(
        label="Newest jobs to keep", min_value=0, max_value=MOST_NEWEST, required=False,
        widget=_input(forms.NumberInput), help_text="Of each namespace, however old they are.",
    )  # fmt: skip
    tags = forms.CharField(
        label="Tags to keep", max_length=900, required=False, widget=_input(),
        help_text="Separated by commas. A job with one of them is kept.",
    )  # fmt: skip
    spares_models = forms.BooleanField(
        label="Keep the data of jobs that produced a model version", required=False, widget=_check()
    )
    only_archived = forms.BooleanField(label="Only archived jobs", required=False, widget=_check())
    field_order = ["kind", "namespace", "days", "newest", "tags", "spares_models", "only_archived", "reason"]

    def said(self, request: HttpRequest) -> RuleFacts:
        """Raises `Invalid` for a namespace that there is not."""
        given = self.cleaned_data
        namespace = None
        if given["namespace"]:
            try:
                namespace = namespace_for(user_of(request), given["namespace"])
            except NotFound as error:
                problem = Problem("namespace", "unknown", "There is no such namespace.", "Write its slug.")
                raise Invalid([problem]) from error
        return RuleFacts(
            Kind(given["kind"]), given["days"], namespace, given["newest"] or 0, given["tags"].split(","),
            given["spares_models"], given["only_archived"],
        )  # fmt: skip


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def retention_page(request: HttpRequest) -> HttpResponse:
    """The rules, and a form: posted, a preview; posted from the preview, the rule is saved."""
    form = RuleForm(request.POST) if request.method == "POST" else RuleForm(initial=_initial(request))
    if form.is_bound and form.is_valid():
        try:
            return _saved(request, form) if "save" in request.POST else _preview(request, form)
        except DomainError as problem:
            show_in_form(form, problem)
    context = {
        "rules": [(KINDS[Kind(one.kind)], one) for one in retention.rules()],
        "form": form,
        "removed": [(KINDS[Kind(event.facts["kind"])], event, slug) for event, slug in retention.removed_lately()],
    }
    return render(request, "administration/retention.html", context, status=400 if form.errors else 200)


def _initial(request: HttpRequest) -> dict[str, Any]:
    """The rule of `?rule=`, to be changed; else a new one."""
    asked = request.GET.get("rule", "")
    row = RetentionRule.objects.select_related("namespace").filter(pk=asked).first() if is_uuid(asked) else None
    if row is None:
        return {"spares_models": True}
    names = ("kind", "days", "newest", "spares_models", "only_archived")
    slug = row.namespace.slug if row.namespace else ""
    return {name: getattr(row, name) for name in names} | {"tags": ", ".join(row.tags), "namespace": slug}


def _preview(request: HttpRequest, form: RuleForm) -> HttpResponse:
    said = form.said(request)
    context = {
        "preview": retention.rule_preview(said),
        "said": said,
        "what": KINDS[said.kind],
        "reason": form.cleaned_data["reason"],
        "kept": [(name, form.data[name]) for name, value in form.cleaned_data.items() if value],
        "breadcrumbs": [(reverse(_BACK), "Retention")],
    }
    return render(request, "administration/retention_preview.html", context)


def _saved(request: HttpRequest, form: RuleForm) -> HttpResponse:
    said = form.said(request)
    retention.rule_set(said=said, reason=form.cleaned_data["reason"], actor=user_of(request))
    messages.success(request, "The rule is saved. Jobs that are old enough are removed in the background, in steps.")
    return redirect(_BACK)


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def retention_reset(request: HttpRequest, rule_id: UUID) -> HttpResponse:
    """Asks for the reason, and removes the rule."""
    found = retention.rule_by_id(rule_id)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            retention.rule_reset(found=found, reason=form.cleaned_data["reason"], actor=user_of(request))
            messages.success(request, "The rule is removed.")
            return redirect(_BACK)
        except DomainError as problem:
            show_in_form(form, problem)
    context = {
        "rule": found, "what": KINDS[Kind(found.kind)], "form": form, "breadcrumbs": [(reverse(_BACK), "Retention")],
    }  # fmt: skip
    return render(request, "administration/retention_reset.html", context, status=400 if form.errors else 200)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/retention/", retention_page, name="admin_retention_page"),
    path("admin/retention/<uuid:rule_id>/reset/", retention_reset, name="admin_retention_reset"),
]
