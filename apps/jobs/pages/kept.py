"""A part of a job's page, fetched by it: until when its log, its files and the job itself are kept."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.accounts.selectors import user_of
from apps.jobs.explanations.kept import kept_shown
from apps.jobs.selectors import job_for


@login_required
@require_safe
def kept_part(request: HttpRequest, job_id: UUID) -> HttpResponse:
    job, now = job_for(user_of(request), job_id), timezone.now()
    return render(request, "jobs/job/kept.html", kept_shown(job, now))


urlpatterns: list[URLPattern | URLResolver] = [path("jobs/<uuid:job_id>/kept/", kept_part, name="job_kept_part")]
