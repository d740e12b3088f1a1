"""The page of a job's outputs: the files that its tasks wrote below their log directories."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_GET

from apps.accounts.selectors import user_of
from apps.jobs.models import Job
from apps.jobs.selectors import job_for
from apps.jobs.state import output_files
from apps.jobs.state.output_delivery import output_response, outputs_archive
from apps.jobs.state.retention import cleared_words, is_cleared, refuse_cleared
from apps.jobs.state.specs import spec_or_remains
from yardmaster.lifecycle.retention import Kind

ROWS = 200
LONGEST_NAME = 600


@login_required
@require_GET
def outputs(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """The files of `?attempt=` (the newest) by path, those that follow `?after=`."""
    job = job_for(user_of(request), job_id)
    attempt, after = attempt_of(request, job), request.GET.get("after", "")[:LONGEST_NAME]
    rows, following = output_files.outputs_page(job.pk, attempt, after, ROWS)
    context = {
        "job": job,
        "gone": cleared_words(job, Kind.FILES) if is_cleared(job, Kind.FILES, attempt) else "",
        "attempt": attempt,
        "rows": rows,
        "after": after,
        "following": following,
        "log_env": spec_or_remains(job)[0].paths.log_env,
        "breadcrumbs": [(reverse("jobs_page"), "Jobs"), (reverse("job_page", args=[job_id]), job.name)],
    }
    return render(request, "jobs/outputs.html", context)


@login_required
@require_GET
def output_file(request: HttpRequest, job_id: UUID) -> HttpResponseBase:
    """The bytes of `?path=`."""
    job = job_for(user_of(request), job_id)
    name = request.GET.get("path", "")[: LONGEST_NAME + 1]
    attempt = attempt_of(request, job)
    refuse_cleared(job, Kind.FILES, attempt)
    output = output_files.output_for(job.pk, attempt, name)
    return output_response(request, user_of(request), job, output)


@login_required
@require_GET
def output_archive(request: HttpRequest, job_id: UUID) -> HttpResponseBase:
    """All files of an attempt as one zip."""
    job = job_for(user_of(request), job_id)
    attempt = attempt_of(request, job)
    refuse_cleared(job, Kind.FILES, attempt)
    return outputs_archive(request, user_of(request), job, attempt)


def attempt_of(request: HttpRequest, job: Job) -> int:
    """The query's attempt, if it is one of the job's; else the newest."""
    asked = request.GET.get("attempt", "")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else job.attempt
    return number if 1 <= number <= job.attempt else job.attempt


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/<uuid:job_id>/outputs/", outputs, name="job_outputs_page"),
    path("jobs/<uuid:job_id>/outputs/file/", output_file, name="job_output_file_page"),
    path("jobs/<uuid:job_id>/outputs/archive/", output_archive, name="job_outputs_archive_page"),
]
