"""The pages of job templates: the list, one with its small launch form, and the form that saves them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.errors import DomainError, NotFound, words_of
from apps.jobs.checking import NeverFits
from apps.jobs.foreign import FIELD, ForeignModel
from apps.jobs.launch.forms import LaunchForm
from apps.jobs.launch.pages import launch_filled
from apps.jobs.launch.spec_values import values_of_spec
from apps.jobs.selectors import job_for
from apps.jobs.state.specs import asked_spec
from apps.namespaces.context import current_namespace, require_role_within
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import may, namespace_for
from apps.schedules import templates
from apps.schedules.contents import (
    Content,
    content_of_revision,
    reference_names,
    references_of,
    resolved,
    spec_of_job,
)
from apps.schedules.models import JobTemplate, TemplateRevision
from apps.schedules.page_parts import list_context, may_change, tried
from apps.schedules.revisions import changes_in, revisions_of
from apps.schedules.selectors import (
    jobs_of_template,
    newest_revision_for,
    revision_of,
    schedules_visible,
    template_for,
    templates_listed,
    templates_visible,
)
from apps.schedules.template_forms import (
    ParameterRows,
    TemplateForm,
    TemplateLaunchForm,
    arguments_text,
    environment_text,
    rows_at_first,
    show_problems,
)
from yardmaster.errors import SpecRejected, YardmasterError
from yardmaster.job.spec_json import spec_to_json
from yardmaster.job.template_parameters import MOST

JOBS_SHOWN, MOST_OTHERS = 10, 100


@dataclass(frozen=True)
class Source:
    """What a new template is made of."""

    namespace: Namespace
    spec: Mapping[str, Any]
    engine: str
    title: str
    latest: list[str] = field(default_factory=list)
    parameters: list[dict[str, Any]] = field(default_factory=list)


@login_required
@require_GET
def templates_page(request: HttpRequest) -> HttpResponse:
    """Those of the namespace that the user works in."""
    return render(request, "schedules/templates.html", list_context(request, templates_listed))


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def template_page(request: HttpRequest, template_id: UUID, number: int | None = None) -> HttpResponse:
    """One template: its launch form, what it says, and what was launched from it. `number`: of an older revision, which
    is then launched."""
    user, is_post = user_of(request), request.method == "POST"
    template = template_for(user, template_id, at_least=Role.MEMBER if is_post else Role.VIEWER)
    revision = revision_of(template, number)
    content = content_of_revision(revision)
    form = TemplateLaunchForm(
        request.POST if is_post else None, parameters=content.parameters, usual_name=content.spec["name"]
    )
    refusal: NeverFits | ForeignModel | None = None
    if form.is_bound and form.is_valid():
        try:
            job, warnings = templates.template_launch(
                user=user, template=template, values=form.values(), name=form.cleaned_data["name"], number=number,
                accept_never_fits=bool(request.POST.get("accept_never_fits")),
                confirm_foreign_model=bool(request.POST.get(FIELD)),
            )  # fmt: skip
        except (NeverFits, ForeignModel) as problem:
            refusal = problem
        except (DomainError, YardmasterError) as problem:
            show_problems(form, problem)
        else:
            messages.success(request, f"Launched {job.name}.")
            for warning in warnings[:3]:
                messages.warning(request, f"{warning.message} {warning.remedy}")
            return redirect("job_page", job.pk)
    context = _shown(user, template, revision, content) | {"form": form, "refusal": refusal}
    context["refused_field"] = FIELD if isinstance(refusal, ForeignModel) else "accept_never_fits"
    status = 409 if refusal else 422 if form.is_bound else 200
    return render(request, "schedules/template.html", context, status=status)


def _shown(user: User, template: JobTemplate, revision: TemplateRevision, content: Content) -> dict[str, Any]:
    """What the page of a template shows beside its form."""
    older = revision.number != template.revision
    references = list(references_of(content.spec))
    return {
        "template": template,
        "revision": revision,
        "spec": content.spec,
        "engine": content.engine,
        "gone": resolved(user, content)[1],
        "references": [(one.kind, content.named.get(one.key, ""), one.key in content.latest) for one in references],
        "arguments": arguments_text(content.spec.get("arguments") or ()),
        "launched": jobs_of_template(template, JOBS_SHOWN),
        "schedules": list(schedules_visible(user, template.namespace).filter(template=template)[:JOBS_SHOWN]),
        "may_change": may_change(user, template.namespace),
        "is_older": older,
        "changes": changes_in(template, revision),
        "breadcrumbs": _way(template)[:-1] if not older else revisions_way(template),
    }


@login_required
@require_GET
def template_revisions(request: HttpRequest, template_id: UUID) -> HttpResponse:
    """Who changed the template when, and what."""
    user = user_of(request)
    template = template_for(user, template_id)
    context = {
        "template": template, "revisions": revisions_of(template), "kept": templates.KEPT_REVISIONS,
        "may_change": may_change(user, template.namespace), "breadcrumbs": _way(template),
    }  # fmt: skip
    return render(request, "schedules/revisions.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def template_new(request: HttpRequest) -> HttpResponse:
    """Save a job as a template, or what the launch form has sent on to here (`template_from_form`)."""
    user = user_of(request)
    source = _source(request, user)
    others = _others(user, source.namespace)
    if request.method != "POST":
        return _form_page(request, source, _first_form(user, source, others), rows_at_first(source.parameters))
    form = TemplateForm(request.POST, references=_references(user, source.spec), others=others)
    rows = _rows(request)
    if "add" in request.POST:
        return _form_page(request, source, form, [*_texts(rows), {}, {}, {}][:MOST])
    if form.is_valid() and rows.is_valid():
        data = form.cleaned_data
        said = {"spec": form.changed(source.spec), "engine": source.engine, "latest": data["latest"],
                "parameters": _parameters(rows), "description": data["description"]}  # fmt: skip
        saved = tried(form, lambda: _saved(user, source.namespace, data["name"], data["replaces"], said), rows)
        if saved is not None:
            messages.success(request, f"Saved the template {saved.name}.")
            return redirect("template_page", saved.pk)
    return _form_page(request, source, form, None, rows=rows, status=422)


def _saved(user: User, namespace: Namespace, name: str, replaces: str, said: dict[str, Any]) -> JobTemplate:
    if not replaces:
        return templates.template_create(user=user, namespace=namespace, name=name, **said)
    old = template_for(user, UUID(replaces), at_least=Role.MEMBER)
    return templates.template_change(user=user, template=old, name=name, **said)


@login_required
@require_POST
def template_from_form(request: HttpRequest) -> HttpResponse:
    """The launch form, to be saved as a template: shows the form that asks for the rest."""
    user, launch = user_of(request), LaunchForm(request.POST)
    try:
        spec = spec_to_json(asked_spec(launch.spec))
    except SpecRejected as error:
        problem = error.problems[0]
        messages.error(request, f"The job is not complete: {problem.field}: {problem.message} {problem.remedy}")
        return launch_filled(request, user, launch.values(), status=422)
    place = launch.texts()
    namespace = namespace_for(user, place["namespace"] or None, at_least=Role.MEMBER)
    source = Source(namespace, spec, place["engine"], "the launch form")
    return _form_page(request, source, _first_form(user, source, _others(user, namespace)), rows_at_first([]))


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def template_edit(request: HttpRequest, template_id: UUID) -> HttpResponse:
    """Change a template: its name, arguments, variables and parameters. The rest is changed in the launch form."""
    user, revision = user_of(request), newest_revision_for(user_of(request), template_id)
    template = revision.template
    require_role_within(request, template.namespace, Role.MEMBER)
    source = Source(template.namespace, revision.spec, revision.engine, template.name, list(revision.latest),
                    revision.parameters)  # fmt: skip
    if request.method != "POST":
        initial = _initial(source) | {"name": template.name, "description": template.description}
        form = TemplateForm(initial=initial, references=_references(user, revision.spec))
        return _form_page(request, source, form, rows_at_first(revision.parameters), template=template)
    form = TemplateForm(request.POST, references=_references(user, revision.spec))
    rows = _rows(request)
    if "add" in request.POST:
        return _form_page(request, source, form, [*_texts(rows), {}, {}, {}][:MOST], template=template)
    if form.is_valid() and rows.is_valid():
        data = form.cleaned_data
        said = {name: data[name] for name in ("name", "description", "latest")}
        said |= {"spec": form.changed(revision.spec), "parameters": _parameters(rows)}
        if tried(form, lambda: templates.template_change(user=user, template=template, **said), rows):
            messages.success(request, f"Saved. Launches use revision {template.revision}.")
            return redirect("template_page", template.pk)
    return _form_page(request, source, form, None, rows=rows, template=template, status=422)


@login_required
@require_GET
def template_in_form(request: HttpRequest, template_id: UUID) -> HttpResponse:
    """The launch form, filled in with the template's newest revision."""
    user, revision = user_of(request), newest_revision_for(user_of(request), template_id)
    template, content = revision.template, content_of_revision(revision)
    require_role_within(request, template.namespace, Role.MEMBER)
    spec, gone = resolved(user, content)
    for problem in gone:
        messages.warning(request, f"{problem.message} Choose another version in the form.")
    try:
        values = values_of_spec(asked_spec(spec))
    except SpecRejected as error:
        messages.error(request, words_of(error))
        return redirect("template_page", template.pk)
    return launch_filled(request, user, values | {"engine": content.engine}, namespace=template.namespace)


@login_required
@require_POST
def template_delete(request: HttpRequest, template_id: UUID) -> HttpResponse:
    user = user_of(request)
    template = template_for(user, template_id, at_least=Role.MEMBER)
    try:
        templates.template_remove(user=user, template=template)
    except DomainError as problem:
        messages.error(request, words_of(problem))
        return redirect("template_page", template.pk)
    messages.success(request, f"Removed the template {template.name}.")
    return redirect("templates_page")


def _source(request: HttpRequest, user: User) -> Source:
    """The job that is named, or the specification that the form carries along. Raises `NotFound` without either."""
    given = request.POST if request.method == "POST" else request.GET
    if job_id := given.get("job"):
        job = job_for(user, job_id)
        namespace = job.namespace if may(user, job.namespace, Role.MEMBER) else current_namespace(request)
        return Source(namespace, spec_of_job(job), job.engine, job.name)
    try:
        spec = spec_to_json(asked_spec(json.loads(given.get("spec", ""))))
    except (ValueError, RecursionError, SpecRejected) as error:
        raise NotFound("There is no job to save.", remedy="Open a job, and save it as a template.") from error
    namespace = namespace_for(user, given.get("in") or None, at_least=Role.MEMBER)
    return Source(namespace, spec, given.get("engine", "")[:63], "the launch form")


def _first_form(user: User, source: Source, others: list[tuple[str, str]]) -> TemplateForm:
    initial = _initial(source) | {"name": source.spec["name"]}
    return TemplateForm(initial=initial, others=others, references=_references(user, source.spec))


def _initial(source: Source) -> dict[str, Any]:
    return {
        "arguments": arguments_text(source.spec.get("arguments") or ()),
        "environment": environment_text(source.spec.get("environment") or {}),
        "latest": source.latest,
    }


def _others(user: User, namespace: Namespace) -> list[tuple[str, str]]:
    """The templates that may get a new revision."""
    found = templates_visible(user, namespace).values_list("pk", "name")[:MOST_OTHERS]
    return [(str(key), f"A new revision of {name}") for key, name in found]


def _references(user: User, spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Key and words of each version that the specification names."""
    named, found = reference_names(user, spec), []
    for one in references_of(spec):
        words = "Code" if one.kind == "code" else f"Input {int(one.key.rpartition('.')[2]) + 1} ({one.kind})"
        found.append((one.key, f"{words}: {named.get(one.key, 'gone')}"))
    return found


def _rows(request: HttpRequest) -> Any:
    rows: Any = ParameterRows(request.POST, prefix="rows")
    rows.is_valid()
    rows.meant = [form for form in rows.forms if getattr(form, "cleaned_data", {}).get("name")]
    return rows


def _texts(rows: Any) -> list[dict[str, Any]]:
    return [{name: form[name].value() for name in form.fields} for form in rows.forms if form["name"].value()]


def _parameters(rows: Any) -> list[dict[str, Any]]:
    return [form.said() for form in rows.meant]


def revisions_way(template: JobTemplate) -> list[tuple[str, str]]:
    """The way to one of its revisions."""
    return [*_way(template), (reverse("template_revisions", args=[template.pk]), "Revisions")]


def _way(template: JobTemplate | None = None) -> list[tuple[str, str]]:
    way = [(reverse("jobs_page"), "Jobs"), (reverse("templates_page"), "Templates")]
    return way if template is None else [*way, (reverse("template_page", args=[template.pk]), template.name)]


def _form_page(
    request: HttpRequest, source: Source, form: TemplateForm, initial: list[dict[str, Any]] | None, *, rows: Any = None,
    template: JobTemplate | None = None, status: int = 200,
) -> HttpResponse:  # fmt: skip
    if rows is None:
        rows = ParameterRows(initial=initial, prefix="rows")
    context = {
        "source": source, "form": form, "rows": rows, "template": template, "breadcrumbs": _way(template),
        "spec": "" if template else json.dumps(source.spec), "most": MOST, "can_add": len(rows.forms) < MOST,
    }  # fmt: skip
    return render(request, "schedules/template_form.html", context, status=status)


_ONE = "jobs/templates/<uuid:template_id>/"
pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/templates/", templates_page, name="templates_page"),
    path("jobs/templates/new/", template_new, name="template_new"),
    path("jobs/templates/from-form/", template_from_form, name="template_from_form"),
    path(_ONE, template_page, name="template_page"),
    path(f"{_ONE}revisions/", template_revisions, name="template_revisions"),
    path(f"{_ONE}revisions/<int:number>/", template_page, name="template_revision"),
    path(f"{_ONE}edit/", template_edit, name="template_edit"),
    path(f"{_ONE}form/", template_in_form, name="template_in_form"),
    path(f"{_ONE}delete/", template_delete, name="template_delete"),
]
