"""The page of one job, and what is done from it: stop, retry as it was or with the change that helps, delete.

What it shows is read by `apps.jobs.pages.facts`; its log is `apps.logs`' matter.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.selectors import user_of
from apps.api.problems import status_of
from apps.errors import DomainError, words_of
from apps.jobs import services
from apps.jobs.checking import NeverFits
from apps.jobs.engines.manifests import manifests_of_job
from apps.jobs.foreign import FIELD, ForeignModel
from apps.jobs.launch.preview import verdict_of_decision
from apps.jobs.models import Job
from apps.jobs.pages.facts import JobFacts, job_facts
from apps.jobs.selectors import job_for
from apps.namespaces.context import role_within
from yardmaster.errors import SpecRejected, YardmasterError
from yardmaster.job.export.tasks import refusals
from yardmaster.job.spec_stored import stored_spec


@login_required
@require_GET
def job_page(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """The page; for htmx only the parts that change, each to be put in the place of the old one."""
    facts = _facts(request, job_for(user_of(request), job_id))
    context = {"facts": facts, "job": facts.job, "breadcrumbs": [(reverse("jobs_page"), "Jobs")]}
    if "HX-Request" in request.headers:
        response = render(request, "jobs/job/changed.html", context | {"oob": True})
    else:
        response = render(request, "jobs/job/page.html", context)
    patch_vary_headers(response, ["HX-Request"])  # the parts must not be kept in the page's place
    return response


@login_required
@require_POST
def job_stop(request: HttpRequest, job_id: UUID) -> HttpResponse:
    job = job_for(user_of(request), job_id)
    services.job_stop(user=user_of(request), job=job)
    grace = job.spec.get("grace_period", 0)
    messages.success(request, f"Stopping. The tasks have {grace} s to exit before they are killed.")
    return redirect("job_page", job_id)


@login_required
@require_POST
def job_retry(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """A new attempt; with `change` in the form, the one that is known to help is made first."""
    job = job_for(user_of(request), job_id)
    change = _facts(request, job).change if request.POST.get("change") else None
    asked = {name: bool(request.POST.get(name)) for name in ("accept_never_fits", FIELD)}
    resumes = {"checkpoint": True, "start": False}.get(request.POST.get("begin", ""), job.phase != "SUCCEEDED")
    spec = change.spec if change else None
    try:
        services.job_retry(user=user_of(request), job=job, spec=spec, resumes=resumes, **asked)
    except (NeverFits, ForeignModel) as refusal:
        way = [(reverse("jobs_page"), "Jobs"), (reverse("job_page", args=[job_id]), job.name)]
        context: dict[str, Any] = {
            "job": job,
            "change": change,
            "asked": asked,
            "begin": "checkpoint" if resumes else "start",
            "breadcrumbs": way,
            "foreign": refusal.detail,
        }
        if isinstance(refusal, ForeignModel):
            return render(request, "jobs/job/foreign_model.html", context, status=status_of(refusal))
        context["never"] = verdict_of_decision(refusal.decision)
        return render(request, "jobs/job/never_fits.html", context, status=status_of(refusal))
    except SpecRejected as error:
        for problem in error.problems:
            messages.error(request, f"{problem.message} {problem.remedy}")
        return redirect("job_page", job_id)
    except (DomainError, YardmasterError) as error:
        _complain(request, error)
        return redirect("job_page", job_id)
    words = f" with {change.label}" if change else ""
    place = "resumes from the latest checkpoint" if resumes else "starts from the beginning"
    messages.success(request, f"Attempt {job.attempt} is queued{words}. It {place}.")
    return redirect("job_page", job_id)


@login_required
@require_http_methods(["GET", "POST"])
def job_delete(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """GET says what goes with the job and asks for its name; POST deletes where the name is right."""
    job = job_for(user_of(request), job_id)
    facts = _facts(request, job)
    error = ""
    if request.method == "POST":
        if request.POST.get("name", "").strip() != job.name.strip():
            error = "The name does not match. Nothing was deleted."
        else:
            try:
                services.job_delete(user=user_of(request), job=job)
            except DomainError as problem:
                error = f"{problem.detail} {problem.remedy}"
            else:
                messages.success(request, f"Deleted {job.name}. Its storage is released soon.")
                return redirect("jobs_page")
    way = [(reverse("jobs_page"), "Jobs"), (reverse("job_page", args=[job_id]), job.name)]
    context = {"facts": facts, "job": job, "error": error, "breadcrumbs": way}
    return render(request, "jobs/job/delete.html", context, status=400 if error else 200)


@login_required
@require_GET
def job_manifests(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """What the engine makes for the job, to read and to copy."""
    job = job_for(user_of(request), job_id)
    context: dict[str, Any] = {
        "job": job,
        "breadcrumbs": [(reverse("jobs_page"), "Jobs"), (reverse("job_page", args=[job_id]), job.name)],
    }
    try:
        context["can_export"] = not refusals(stored_spec(job.spec))
        context["manifests"] = manifests_of_job(job)
    except YardmasterError as error:
        context["trouble"] = error
    return render(request, "jobs/job/manifests.html", context, status=503 if "trouble" in context else 200)


def _facts(request: HttpRequest, job: Job) -> JobFacts:
    user = user_of(request)
    return job_facts(user, job, role_within(request, job.namespace), timezone.now())


def _complain(request: HttpRequest, error: DomainError | YardmasterError) -> None:
    messages.error(request, words_of(error))


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/<uuid:job_id>/", job_page, name="job_page"),
    path("jobs/<uuid:job_id>/stop/", job_stop, name="job_stop_page"),
    path("jobs/<uuid:job_id>/retry/", job_retry, name="job_retry_page"),
    path("jobs/<uuid:job_id>/manifests/", job_manifests, name="job_manifests_page"),
    path("jobs/<uuid:job_id>/delete/", job_delete, name="job_delete_page"),
]
