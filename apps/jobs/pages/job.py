"""The page of one job."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path

from apps.accounts.models import User
from apps.jobs.selectors import job_for


@login_required
def job_page(request: HttpRequest, job_id: UUID) -> HttpResponse:
    assert isinstance(request.user, User)
    return render(request, "jobs/job.html", {"job": job_for(request.user, job_id)})


urlpatterns: list[URLPattern | URLResolver] = [path("jobs/<uuid:job_id>/", job_page, name="job_page")]
