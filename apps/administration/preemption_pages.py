"""The page of preemption: on which engines jobs may be preempted, within which bounds, and which were."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_http_methods

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.administration import preemption
from apps.api.problems import show_in_form
from apps.errors import DomainError
from apps.jobs.models import PreemptionPolicy
from apps.jobs.models.preemption import LONGEST_MINUTES, MOST_A_DAY
from apps.namespaces.models import PriorityClass

_NUMBER = {"class": "form-control", "autocomplete": "off"}


class PolicyForm(forms.Form):
    is_on = forms.BooleanField(
        label="Jobs may be preempted on this engine", required=False,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )  # fmt: skip
    least_minutes = forms.IntegerField(
        label="Minutes that a job runs before it can be preempted", min_value=1, max_value=LONGEST_MINUTES,
        widget=forms.NumberInput(attrs=_NUMBER),
        help_text="The same time passes before more jobs are preempted for the same waiting job.",
    )  # fmt: skip
    most_a_day = forms.IntegerField(
        label="Most preemptions of one job in 24 hours", min_value=1, max_value=MOST_A_DAY,
        widget=forms.NumberInput(attrs=_NUMBER),
    )  # fmt: skip


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def preemption_page(request: HttpRequest) -> HttpResponse:
    """A form for each engine, and what was preempted lately."""
    asked = request.POST.get("engine") if request.method == "POST" else None
    found = preemption.policies()
    forms_of = [(one, _form(one, request if asked == one.engine else None)) for one in found]
    for one, form in forms_of:
        if form.is_bound and form.is_valid():
            try:
                facts = preemption.PolicyFacts(**form.cleaned_data)
                preemption.policy_set(engine=one.engine, facts=facts, actor=user_of(request))
                messages.success(request, f"Changed preemption on {one.engine}.")
                return redirect("admin_preemption_page")
            except DomainError as problem:
                show_in_form(form, problem)
    context = {
        "forms": forms_of,
        "preemptions": preemption.preemptions_shown(),
        "classes": PriorityClass.objects.filter(preempts=True).order_by("-value", "name"),
    }
    is_wrong = request.method == "POST"
    return render(request, "administration/preemption.html", context, status=400 if is_wrong else 200)


def _form(one: PreemptionPolicy, request: HttpRequest | None) -> PolicyForm:
    initial = {name: getattr(one, name) for name in preemption.PolicyFacts.__annotations__}
    return PolicyForm(request.POST if request else None, initial=initial, auto_id=f"{one.engine}-%s")


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/preemption/", preemption_page, name="admin_preemption_page"),
]
