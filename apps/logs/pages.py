"""The page of a job's log: `?attempt=` and `?task=` say which, the rest of the address is the viewer's own."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_GET

from apps.accounts.models import User
from apps.jobs.selectors import job_for
from apps.logs.view_facts import log_facts


@login_required
@require_GET
def log_page(request: HttpRequest, job_id: UUID) -> HttpResponse:
    assert isinstance(request.user, User)
    job = job_for(request.user, job_id)
    asked = request.GET.get("attempt", "")
    attempt = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else None
    way = [(reverse("jobs_page"), "Jobs"), (reverse("job_page", args=[job_id]), job.name)]
    context = {"job": job, "log": log_facts(job, attempt=attempt, task=request.GET.get("task", "")), "breadcrumbs": way}
    return render(request, "logs/page.html", context)


pages_urlpatterns: list[URLPattern | URLResolver] = [path("jobs/<uuid:job_id>/logs/", log_page, name="log_page")]
