"""Chosen jobs side by side. Which ones and which of their scalars lies in the address."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from django.views.decorators.http import require_GET

from apps.accounts.models import User
from apps.errors import NotFound
from apps.jobs.launch import choices
from apps.jobs.models import Job
from apps.jobs.pages.bulk import jobs_chosen
from apps.jobs.pages.comparison import MOST_JOBS, compare, labels_of
from apps.jobs.state.specs import spec_or_remains
from apps.namespaces.selectors import reading_note
from yardmaster.job.spec_stored import stored_form


@login_required
@require_GET
def job_compare(request: HttpRequest) -> HttpResponse:
    """In the order of the address; those that the reader may not see are left out."""
    assert isinstance(request.user, User)
    asked = list(dict.fromkeys(request.GET.getlist("job")))
    found = {str(job.pk): job for job in jobs_chosen(request.user, asked[:MOST_JOBS], with_spec=True)}
    for job in found.values():
        reading_note(request.user, "job", job.pk, job.namespace)
    jobs = [found[one] for one in asked if one in found]
    if not jobs:
        raise NotFound("None of these jobs exists, or none is visible to you.", remedy="Select jobs in the list.")
    chosen = request.GET.getlist("tag")
    specs = [stored_form(spec_or_remains(job)[0]) for job in jobs]
    comparison = compare(jobs, specs, chosen=chosen, names=_names(request.user, specs), now=timezone.now())
    context = {
        "comparison": comparison,
        "columns": [
            (row, _without(request.GET, row.job), label)
            for row, label in zip(comparison.rows, labels_of(jobs), strict=True)
        ],
        "chosen": [scalar.tag for scalar in comparison.scalars],
        "hidden": max(0, len(asked) - len(jobs)),
        "only_differences": request.GET.get("show") == "differences",
        "all_url": _showing(request.GET, None),
        "differences_url": _showing(request.GET, "differences"),
    }
    return render(request, "jobs/compare.html", context)


def _names(user: User, specs: list[dict[str, Any]]) -> dict[str, str]:
    """What to call the code and data of these jobs."""
    codes = {spec["code"] or "" for spec in specs}
    data = {one["dataset_version"] for spec in specs for one in spec["inputs"] if "dataset_version" in one}
    found = choices.choices_of(user, {"code": codes, "dataset": data}, most=0)
    return {one.id: f"{one.name}, version {one.number}" for some in found.values() for one in some}


def _without(query: QueryDict, job: Job) -> str:
    """This comparison without one of its jobs; empty where it is the last one."""
    rest = [one for one in query.getlist("job") if one != str(job.pk)]
    changed = query.copy()
    changed.setlist("job", rest)
    return f"?{changed.urlencode()}" if rest else ""


def _showing(query: QueryDict, what: str | None) -> str:
    changed = query.copy()
    changed.pop("show", None)
    if what:
        changed["show"] = what
    return f"?{changed.urlencode()}"


urlpatterns: list[URLPattern | URLResolver] = [path("jobs/compare/", job_compare, name="job_compare_page")]
