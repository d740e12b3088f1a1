"""The page of reservations: what is reserved for whom and when, a form for a new one, and ending one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.administration import reservations
from apps.administration.quota_forms import amounts_by_name
from apps.api.problems import show_in_form
from apps.errors import DomainError, Invalid, NotFound
from apps.jobs.engines.configured import engine_names
from apps.namespaces.models import ShareNode
from yardmaster.errors import Problem, YardmasterError
from yardmaster.quantity import NotAQuantity, parse_memory

_TIME = "%Y-%m-%dT%H:%M"


def _input(kind: type[forms.Widget] = forms.TextInput, **attrs: Any) -> forms.Widget:
    return kind(attrs={"class": "form-control", "autocomplete": "off", **attrs})


class UtcField(forms.CharField):
    """A minute, in UTC."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=25, widget=_input(type="datetime-local"), **options)

    def clean(self, value: Any) -> datetime:
        text = super().clean(value)
        try:
            return datetime.strptime(text[:16], _TIME).replace(tzinfo=UTC)
        except ValueError as error:
            raise ValidationError("Write a time such as 2026-12-01T09:00.", code="invalid") from error


class ReservationForm(forms.Form):
    engine = forms.ChoiceField(label="Engine", widget=forms.Select(attrs={"class": "form-select"}))
    namespace = forms.CharField(
        label="Namespace", max_length=63, required=False, widget=_input(),
        help_text="Its slug or ID. Its jobs get what is reserved.",
    )  # fmt: skip
    group = forms.ChoiceField(
        label="Or a group", required=False, widget=forms.Select(attrs={"class": "form-select"}),
        help_text="A group from the page Shares: the jobs of all namespaces in it share what is reserved.",
    )  # fmt: skip
    cpu = forms.FloatField(
        label="CPU cores", min_value=0, max_value=10**7, required=False, widget=_input(forms.NumberInput, step="any")
    )
    memory = forms.CharField(label="Memory", max_length=20, required=False, widget=_input(placeholder="64Gi"))
    gpus = forms.IntegerField(
        label="GPUs", min_value=0, max_value=10**6, required=False, widget=_input(forms.NumberInput)
    )
    extended = forms.CharField(
        label="Other resources", max_length=2000, required=False, widget=_input(placeholder="amd.com/gpu=4"),
        help_text="Any resource of the engine by its name, such as a GPU model or a slice: name=amount, separated by "
        "commas.",
    )  # fmt: skip
    begins_at = UtcField(label="From (UTC)")
    ends_at = UtcField(label="To (UTC)")
    reason = forms.CharField(
        label="Reason", max_length=reservations.LONGEST_REASON, required=False, widget=_input(),
        help_text="Shown to the members for whom the amount is reserved.",
    )  # fmt: skip

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        groups = ShareNode.objects.filter(namespace=None).order_by("name").values_list("name", flat=True)
        offered: dict[str, list[tuple[str, str]]] = {
            "engine": [(one, one) for one in engine_names()],
            "group": [("", "None"), *((one, one) for one in groups)],
        }
        for name, choices in offered.items():
            self.fields[name].choices = choices  # type: ignore[attr-defined]

    def clean_memory(self) -> int | None:
        try:
            return parse_memory(self.cleaned_data["memory"]) if self.cleaned_data["memory"] else None
        except NotAQuantity as error:
            raise ValidationError(str(error).capitalize() + ".", code="invalid") from error

    def clean_extended(self) -> dict[str, int]:
        found = amounts_by_name(self.cleaned_data["extended"])
        for name, amount in found.items():
            if not isinstance(amount, int):
                raise ValidationError(f"{name[:63]}: write a whole number, such as {name[:63]}=2.", code="invalid")
            if name in ("cpu", "memory", "gpus"):
                raise ValidationError(f"Use the field for {name} instead.", code="invalid")
        if len(found) > reservations.MOST_RESOURCES:
            raise ValidationError(f"At most {reservations.MOST_RESOURCES} resources.", code="too_many")
        return {name: amount for name, amount in found.items() if isinstance(amount, int)}

    def said(self) -> reservations.Reserved:
        given = self.cleaned_data
        amounts = {name: given[name] for name in ("cpu", "memory", "gpus") if given.get(name)}
        amounts |= given.get("extended") or {}
        return reservations.Reserved(
            given["engine"], amounts, given["begins_at"], given["ends_at"], given.get("reason", "")
        )


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def reservations_page(request: HttpRequest) -> HttpResponse:
    """Those that are not over, and a form for a new one."""
    form = ReservationForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            return _made(request, form)
        except (DomainError, YardmasterError) as problem:
            _show(form, problem)
    context = {"reservations": list(reservations.reservations()), "form": form, "now": datetime.now(UTC)}
    return render(request, "administration/reservations.html", context, status=400 if form.errors else 200)


def _made(request: HttpRequest, form: ReservationForm) -> HttpResponse:
    actor, ref = user_of(request), form.cleaned_data["namespace"]
    try:
        whose = reservations.owner_named(actor, ref, form.cleaned_data["group"])
    except NotFound as error:
        message = "There is no such namespace."
        raise Invalid([Problem("namespace", "unknown", message, "Write its slug.", ref)]) from error
    made = reservations.reservation_make(whose=whose, reserved=form.said(), actor=actor)
    messages.success(request, f"Reserved for {made.name}.")
    return redirect("admin_reservations_page")


def _show(form: ReservationForm, problem: DomainError | YardmasterError) -> None:
    if isinstance(problem, DomainError) and problem.errors:
        show_in_form(form, Invalid([replace(one, field=_field_of(one.field)) for one in problem.errors]))
    elif isinstance(problem, DomainError):
        show_in_form(form, problem)
    else:
        form.add_error(None, f"{problem.message} {problem.remedy}")


def _field_of(field: str) -> str:
    """The field of the page for one of the service: `amounts.cpu`, `amounts.amd.com/gpu`."""
    whole, _, name = field.partition(".")
    if whole != "amounts" or not name:
        return field
    return name if name in ("cpu", "memory", "gpus") else "extended"


@administrators_only
@require_POST
def reservation_end(request: HttpRequest, reserved_id: UUID) -> HttpResponse:
    reservations.reservation_end(found=reservations.reservation_for(reserved_id), actor=user_of(request))
    messages.success(request, "The reservation has ended.")
    return redirect("admin_reservations_page")


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/reservations/", reservations_page, name="admin_reservations_page"),
    path("admin/reservations/<uuid:reserved_id>/end/", reservation_end, name="admin_reservation_end"),
]
