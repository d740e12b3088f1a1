"""The pages of the presets of the launch form: which there are, adding, changing, ordering and removing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.errors import DomainError, words_of
from apps.images.models import Image
from apps.jobs import presets
from apps.jobs.engines.configured import engine_names
from apps.jobs.launch.long_select import LongSelect, select
from apps.jobs.launch.parts import ParsedField, RoleForm, SpecForm
from apps.jobs.launch.preview import PRESETS
from apps.jobs.launch.spec_values import values_of_spec
from apps.jobs.models import LaunchPreset
from apps.jobs.models.preset import LONGEST_DESCRIPTION, LONGEST_NAME
from apps.namespaces.models import PriorityClass
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import Role
from yardmaster.quantity import parse_duration

_ORDER = (Role.PS, Role.WORKER, Role.CHIEF, Role.EVALUATOR, Role.EXECUTOR, Role.DRIVER)
_MOST_OFFERED = 500
_TITLES = [(one.strategy, one.title) for one in PRESETS]


class PresetForm(SpecForm):
    """A preset with a part for each role. What its amounts mean is decided by the launch form's own parts."""

    name = forms.CharField(
        label="Name", max_length=LONGEST_NAME, widget=forms.TextInput(attrs={"placeholder": "Small"})
    )
    description = forms.CharField(
        label="Description", max_length=LONGEST_DESCRIPTION, required=False,
        widget=forms.TextInput(attrs={"placeholder": "1 PS, 2 workers, 2 CPU"}),
    )  # fmt: skip
    strategy = forms.ChoiceField(label="Training strategy", choices=_TITLES)
    max_runtime = ParsedField(parse_duration, label="Time limit", help_text="90s, 30m, 2h or 1d.")
    engine = forms.CharField(label="Engine", required=False, widget=LongSelect)
    image = forms.CharField(label="Image", required=False, widget=LongSelect)
    priority_class = forms.CharField(label="Priority class", required=False, widget=LongSelect)

    def __init__(self, data: QueryDict | None = None, *, values: Mapping[str, Any] | None = None) -> None:
        at_first = dict(values or {})
        super().__init__(data, initial=at_first)
        of_roles = at_first.get("roles", {})
        self.roles = [RoleForm(one, None, data, initial=of_roles.get(one.value)) for one in _ORDER]
        for form in self.roles:
            del form.fields["image"]
            form.fields["replicas"].required, form.fields["replicas"].label = False, "Tasks"
            form.fields["replicas"].widget.attrs["min"] = 0
        self._offer()

    def _offer(self) -> None:
        select(self.fields["engine"], [(name, name) for name in engine_names()], "As in the form")
        images = Image.objects.filter(enabled=True).order_by("name").values_list("name", flat=True)[:_MOST_OFFERED]
        select(self.fields["image"], [(name, name) for name in images], "As in the form")
        names = PriorityClass.objects.order_by("-value", "name").values_list("name", flat=True)[:_MOST_OFFERED]
        select(self.fields["priority_class"], [(name, name) for name in names], "As in the form")

    def is_valid(self) -> bool:
        return all([super().is_valid(), *(form.is_valid() for form in self.roles)])

    def facts(self) -> presets.PresetFacts:
        """A role without a number of tasks is left out."""
        said = self.said()
        roles = {form.role: form.said() for form in self.roles if form.texts()["replicas"].strip() not in ("", "0")}
        spec = {key: said[key] for key in presets.KEYS if key in said} | {"roles": roles}
        return presets.PresetFacts(said.get("name", ""), said.get("description", ""), said.get("engine", ""), spec)

    def add_problems(self, problems: tuple[Problem, ...] | list[Problem]) -> None:
        """Each at the field that it names."""
        for problem in problems:
            message = f"{problem.message} {problem.remedy}".strip()
            parts = problem.field.split(".")
            role = next((one for one in self.roles if parts[:1] == ["roles"] and one.role in parts[1:2]), None)
            if role is not None:
                field = parts[2] if len(parts) > 2 and parts[2] in role.fields else "replicas"
                role.add_error(field, message)
            else:
                self.add_error(problem.field if problem.field in self.fields else None, message)


@administrators_only
@require_safe
def presets_page(request: HttpRequest) -> HttpResponse:
    """All presets, in order."""
    listed = presets.presets_listed()
    rows = [(one, _words(one.preset), at) for at, one in enumerate(listed)]
    return render(request, "administration/presets.html", {"rows": rows, "last": len(rows) - 1})


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def preset_new(request: HttpRequest) -> HttpResponse:
    form = PresetForm(request.POST if request.method == "POST" else None, values={"strategy": "between_graph"})
    return _saved(request, form, None)


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def preset_page(request: HttpRequest, preset_id: UUID) -> HttpResponse:
    """Change one."""
    preset = presets.preset_for(preset_id)
    form = PresetForm(request.POST if request.method == "POST" else None, values=_values(preset))
    return _saved(request, form, preset)


def _saved(request: HttpRequest, form: PresetForm, preset: LaunchPreset | None) -> HttpResponse:
    if form.is_bound and form.is_valid():
        try:
            facts, actor = form.facts(), user_of(request)
            if preset is None:
                presets.preset_create(facts=facts, actor=actor)
            else:
                presets.preset_change(preset=preset, facts=facts, actor=actor)
            messages.success(request, f"Saved the preset {facts.name}. The launch page offers it.")
            return redirect("admin_presets_page")
        except DomainError as problem:
            form.add_problems(list(problem.errors))
            if not problem.errors:
                form.add_error(None, words_of(problem))
    wrong = bool(form.errors or any(one.errors for one in form.roles))
    crumbs = [(reverse("admin_presets_page"), "Presets")]
    gone = [one for row in presets.presets_listed() if preset and row.preset.pk == preset.pk for one in row.problems]
    context = {"form": form, "preset": preset, "gone": gone, "breadcrumbs": crumbs}
    return render(request, "administration/preset.html", context, status=400 if wrong else 200)


@administrators_only
@require_POST
def preset_move(request: HttpRequest, preset_id: UUID) -> HttpResponse:
    to = request.POST.get("to", "")
    place = int(to) if to.isascii() and to.isdigit() and len(to) < 4 else 0
    presets.preset_move(preset=presets.preset_for(preset_id), to=place, actor=user_of(request))
    return redirect("admin_presets_page")


@administrators_only
@require_POST
def preset_remove(request: HttpRequest, preset_id: UUID) -> HttpResponse:
    preset = presets.preset_for(preset_id)
    presets.preset_remove(preset=preset, actor=user_of(request))
    messages.success(request, f"Removed the preset {preset.name}.")
    return redirect("admin_presets_page")


def _values(preset: LaunchPreset) -> dict[str, Any]:
    """The form that says this preset; what cannot be read any more is left empty."""
    values = {"name": preset.name, "description": preset.description, "engine": preset.engine}
    try:
        said = values_of_spec(presets.spec_of(preset.spec))
    except SpecRejected:
        return values | {"strategy": preset.spec.get("strategy", "")}
    return values | {
        "strategy": said["strategy"], "roles": said["roles"],
        **{name: said[name] for name in ("image", "max_runtime", "priority_class") if preset.spec.get(name)},
    }  # fmt: skip


def _words(preset: LaunchPreset) -> dict[str, Any]:
    """What it fills in, for the list."""
    roles = preset.spec.get("roles", {})
    counts = ", ".join(f"{one.get('replicas', 1)} {name}" for name, one in roles.items())
    strategy = dict(_TITLES).get(preset.spec.get("strategy", ""), preset.spec.get("strategy", ""))
    return {"strategy": strategy, "roles": counts}


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/presets/", presets_page, name="admin_presets_page"),
    path("admin/presets/new/", preset_new, name="admin_preset_new_page"),
    path("admin/presets/<uuid:preset_id>/", preset_page, name="admin_preset_page"),
    path("admin/presets/<uuid:preset_id>/move/", preset_move, name="admin_preset_move"),
    path("admin/presets/<uuid:preset_id>/remove/", preset_remove, name="admin_preset_remove"),
]
