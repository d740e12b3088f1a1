"""The page of a terminal in a task, and the button that releases a task that is held open."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.selectors import user_of
from apps.errors import DomainError, words_of
from apps.jobs import shells
from apps.jobs.selectors import job_for
from yardmaster.job.spec import Role
from yardmaster.lifecycle.failures import task_name


@login_required
@require_GET
def terminal(request: HttpRequest, job_id: UUID, task: str) -> HttpResponse:
    """The script of the page opens it: a page that is only looked at opens nothing."""
    job = job_for(user_of(request), job_id)
    shells.refuse_shells(user_of(request), job)
    role, index = shells.task_of(task)
    way = [(reverse("jobs_page"), "Jobs"), (reverse("job_page", args=[job_id]), job.name)]
    context = {"job": job, "task": task, "title": task_name(Role(role), index), "breadcrumbs": way}
    return render(request, "jobs/terminal.html", context)


@login_required
@require_POST
def release(request: HttpRequest, job_id: UUID, task: str) -> HttpResponse:
    job = job_for(user_of(request), job_id)
    role, index = shells.task_of(task)
    try:
        shells.task_release(user=user_of(request), job=job, role=role, index=index)
    except DomainError as problem:
        messages.error(request, words_of(problem))
    else:
        messages.success(request, f"Released {task}. It ends within seconds.")
    return redirect("job_page", job_id)


@login_required
@require_POST
def stacks(request: HttpRequest, job_id: UUID, task: str) -> HttpResponse:
    job = job_for(user_of(request), job_id)
    role, index = shells.task_of(task)
    try:
        shells.stacks_ask(user=user_of(request), job=job, role=role, index=index)
    except DomainError as problem:
        messages.error(request, words_of(problem))
        return redirect("job_page", job_id)
    messages.success(request, f"The stacks of {task} are in its log within seconds.")
    return redirect(f"{reverse('log_page', args=[job_id])}?attempt={job.attempt}&task={task}")


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/<uuid:job_id>/tasks/<str:task>/terminal/", terminal, name="terminal_page"),
    path("jobs/<uuid:job_id>/tasks/<str:task>/release/", release, name="task_release_page"),
    path("jobs/<uuid:job_id>/tasks/<str:task>/stacks/", stacks, name="task_stacks_page"),
]
