"""What scripts wrote with `tf.summary` beside scalars, by kind: a part of the job's page, and a page of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET

from apps.accounts.selectors import user_of
from apps.jobs.models import Job
from apps.jobs.pages.histograms import picture_of
from apps.jobs.selectors import job_for
from apps.jobs.state.summaries import image_response, summaries_of
from yardmaster.formats.summaries import ImageStep, Parameters, Series, Summaries

_LONGEST_NAME = 600


@dataclass(frozen=True)
class Kind:
    """A tab: its name in addresses, what it is called, and how many tags it has."""

    name: str
    title: str
    count: int


@login_required
@require_GET
def summaries(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """The summaries of `?attempt=` (the newest) of `?kind=` (the first that there is); for htmx only that part,
    which is empty where there are none."""
    job = job_for(user_of(request), job_id)
    attempt = _attempt(request, job)
    found = summaries_of(job.pk, attempt)
    context = _context(job, attempt, found, request.GET.get("kind", ""))
    if "HX-Request" in request.headers:
        response = render(request, "jobs/summaries/kinds.html", context)
    else:
        context["breadcrumbs"] = [(reverse("jobs_page"), "Jobs"), (reverse("job_page", args=[job_id]), job.name)]
        response = render(request, "jobs/summaries/page.html", context)
    patch_vary_headers(response, ["HX-Request"])  # the part must not be kept in the page's place
    return response


@login_required
@require_GET
def summary_image(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """The image `?path=`."""
    job = job_for(user_of(request), job_id)
    return image_response(job.pk, _attempt(request, job), request.GET.get("path", "")[: _LONGEST_NAME + 1])


def _context(job: Job, attempt: int, found: Summaries, wanted: str) -> dict[str, Any]:
    counts = (
        ("images", "Images", len(found.images)),
        ("histograms", "Histograms", len(found.histograms)),
        ("texts", "Text", len(found.texts)),
        ("hparams", "Hyperparameters", len(found.hparams)),
    )
    kinds = [Kind(*one) for one in counts if one[2]]
    shown = next((one.name for one in kinds if one.name == wanted), kinds[0].name if kinds else "")
    context: dict[str, Any] = {"job": job, "attempt": attempt, "found": found, "kinds": kinds, "shown": shown}
    if shown == "images":
        context["images"] = [_newest_first(job, attempt, one) for one in found.images]
    elif shown == "histograms":
        context["pictures"] = [picture_of(one) for one in found.histograms]
    elif shown == "texts":
        context["texts"] = [{"run": one.run, "tag": one.tag, "steps": one.steps[::-1]} for one in found.texts]
    elif shown == "hparams":
        context["names"], context["rows"] = _table(found.hparams)
    return context


def _newest_first(job: Job, attempt: int, series: Series[ImageStep]) -> dict[str, Any]:
    """Files are used again for newer images, so the address has the step as well."""
    steps = []
    for one in series.steps[::-1]:
        query = {"attempt": str(attempt), "path": series.folder + one.file, "step": str(one.step)}
        steps.append(vars(one) | {"url": reverse("job_summary_image_page", args=[job.pk], query=query)})
    return {"run": series.run, "tag": series.tag, "newest": steps[0], "earlier": steps[1:]}


def _table(runs: Sequence[Parameters]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The names of all, and for each run its values in their order."""
    names = sorted({name for one in runs for name in one.values})
    return names, [(one.run, [_in_words(one.values.get(name)) for name in names]) for one in runs]


def _in_words(value: str | float | bool | None) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float | int) and not isinstance(value, bool) else str(value)


def _attempt(request: HttpRequest, job: Job) -> int:
    """The query's attempt, if it is one of the job's; else the newest."""
    asked = request.GET.get("attempt", "")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else job.attempt
    return number if 1 <= number <= job.attempt else job.attempt


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/<uuid:job_id>/summaries/", summaries, name="job_summaries_page"),
    path("jobs/<uuid:job_id>/summaries/image/", summary_image, name="job_summary_image_page"),
]
