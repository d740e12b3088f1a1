"""The pages of schedules: the list, one with its history and next times, and its form."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.errors import DomainError, words_of
from apps.namespaces.context import current_namespace
from apps.namespaces.models import Role
from apps.schedules import services
from apps.schedules.models import JobTemplate, Schedule
from apps.schedules.page_parts import AT_ONCE, list_context, may_change, tried
from apps.schedules.schedule_forms import OVERLAPS, ScheduleForm, TimesForm, initial_of
from apps.schedules.selectors import (
    revision_of,
    runs_of,
    schedule_for,
    schedules_visible,
    template_for,
    templates_visible,
)
from yardmaster.errors import YardmasterError
from yardmaster.job.template_parameters import Parameter, parameters_from_json, written
from yardmaster.schedules.due import Plan

RUNS = 20


@login_required
@require_GET
def schedules_page(request: HttpRequest) -> HttpResponse:
    """Those of the namespace that the user works in."""
    return render(request, "schedules/schedules.html", list_context(request, schedules_visible))


@login_required
@require_GET
def schedule_page(request: HttpRequest, schedule_id: UUID) -> HttpResponse:
    """One schedule: what comes next, and what became of its times."""
    user = user_of(request)
    schedule = schedule_for(user, schedule_id)
    plan = services.plan_of(schedule)
    context = {
        "schedule": schedule,
        "times": [] if schedule.paused_at else services.next_times(plan, timezone.now()),
        "values": [(name, written(value)) for name, value in schedule.values.items()],
        "overlap": OVERLAPS[schedule.overlap],
        "page": page_of(runs_of(schedule), request.GET.get("cursor"), RUNS),
        "may_change": may_change(user, schedule.namespace),
        "breadcrumbs": _way(),
    }
    return render(request, "schedules/schedule.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def schedule_new(request: HttpRequest) -> HttpResponse:
    """A new schedule of a template, or the templates to choose from."""
    user = user_of(request)
    asked = request.GET.get("template")
    if not asked:
        found = templates_visible(user, current_namespace(request))[:AT_ONCE]
        context = {"templates": list(found), "breadcrumbs": _way()}
        return render(request, "schedules/schedule_choose.html", context)
    template = template_for(user, UUID(asked) if _is_id(asked) else UUID(int=0), at_least=Role.MEMBER)
    parameters = _parameters(template)
    if request.method != "POST":
        form = ScheduleForm(parameters=parameters, initial={"name": template.name})
        return _form_page(request, template, form)
    form = ScheduleForm(request.POST, parameters=parameters)
    if form.is_valid():
        made = tried(form, lambda: services.schedule_create(user=user, template=template, **form.said()))
        if made is not None:
            messages.success(request, f"Created the schedule {made.name}.")
            return redirect("schedule_page", made.pk)
    return _form_page(request, template, form, status=422)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def schedule_edit(request: HttpRequest, schedule_id: UUID) -> HttpResponse:
    user = user_of(request)
    schedule = schedule_for(user, schedule_id, at_least=Role.MEMBER)
    template, parameters = schedule.template, _parameters(schedule.template)
    if request.method != "POST":
        form = ScheduleForm(parameters=parameters, initial=initial_of(schedule))
        return _form_page(request, template, form, schedule=schedule)
    form = ScheduleForm(request.POST, parameters=parameters, initial=initial_of(schedule))
    if form.is_valid() and _changed(user, schedule, form):
        messages.success(request, "Saved.")
        return redirect("schedule_page", schedule.pk)
    return _form_page(request, template, form, schedule=schedule, status=422)


@login_required
@require_GET
def schedule_times(request: HttpRequest) -> HttpResponse:
    """The next five times of what stands in the form, as a part of the page."""
    form = TimesForm(request.GET)
    context: dict[str, Any] = {"problems": ["Choose when it runs."]}
    if form.is_valid():
        plan, now = Plan(form.expression, form.cleaned_data["time_zone"]), timezone.now()
        problems = services.plan_problems(plan, now)
        context = {"problems": [f"{one.message} {one.remedy}" for one in problems]}
        if not problems:
            context |= {"times": services.next_times(plan, now), "cron": plan.cron}
    return render(request, "schedules/times.html", context)


@login_required
@require_POST
def schedule_act(request: HttpRequest, schedule_id: UUID, action: str) -> HttpResponse:
    """Pause, resume or run it now."""
    user = user_of(request)
    schedule = schedule_for(user, schedule_id, at_least=Role.MEMBER)
    try:
        _act(request, user, schedule, action)
    except (DomainError, YardmasterError) as problem:
        messages.error(request, words_of(problem))
    return redirect("schedule_page", schedule.pk)


def _act(request: HttpRequest, user: User, schedule: Schedule, action: str) -> None:
    if action == "pause":
        services.schedule_pause(user=user, schedule=schedule)
        messages.success(request, "Paused. Jobs that were launched continue.")
    elif action == "resume":
        services.schedule_resume(user=user, schedule=schedule)
        messages.success(request, "Resumed.")
    else:
        job = services.schedule_run_now(user=user, schedule=schedule)
        messages.success(request, f"Launched {job.name}.")


@login_required
@require_POST
def schedule_delete(request: HttpRequest, schedule_id: UUID) -> HttpResponse:
    user = user_of(request)
    schedule = schedule_for(user, schedule_id, at_least=Role.MEMBER)
    services.schedule_remove(user=user, schedule=schedule)
    messages.success(request, f"Removed the schedule {schedule.name}. Its jobs stay.")
    return redirect("schedules_page")


def _changed(user: User, schedule: Schedule, form: ScheduleForm) -> bool:
    return tried(form, lambda: services.schedule_change(user=user, schedule=schedule, **form.said())) is not None


def _parameters(template: JobTemplate) -> tuple[Parameter, ...]:
    return parameters_from_json(revision_of(template).parameters)


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _way(schedule: Schedule | None = None) -> list[tuple[str, str]]:
    way = [(reverse("jobs_page"), "Jobs"), (reverse("schedules_page"), "Schedules")]
    return way if schedule is None else [*way, (reverse("schedule_page", args=[schedule.pk]), schedule.name)]


def _form_page(
    request: HttpRequest, template: JobTemplate, form: ScheduleForm, *, schedule: Schedule | None = None,
    status: int = 200,
) -> HttpResponse:  # fmt: skip
    context = {"template": template, "form": form, "schedule": schedule, "breadcrumbs": _way(schedule)}
    return render(request, "schedules/schedule_form.html", context, status=status)


_ONE = "jobs/schedules/<uuid:schedule_id>/"
pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/schedules/", schedules_page, name="schedules_page"),
    path("jobs/schedules/new/", schedule_new, name="schedule_new"),
    path("jobs/schedules/times/", schedule_times, name="schedule_times_part"),
    path(_ONE, schedule_page, name="schedule_page"),
    path(f"{_ONE}edit/", schedule_edit, name="schedule_edit"),
    path(f"{_ONE}delete/", schedule_delete, name="schedule_delete"),
    path(f"{_ONE}pause/", schedule_act, {"action": "pause"}, name="schedule_pause_form"),
    path(f"{_ONE}resume/", schedule_act, {"action": "resume"}, name="schedule_resume_form"),
    path(f"{_ONE}run/", schedule_act, {"action": "run"}, name="schedule_run_form"),
]
