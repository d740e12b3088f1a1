"""The page of a new sweep. Its job comes from the launch form, or from a job that is there, and travels in the form."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from rest_framework.exceptions import ParseError

from apps.accounts.selectors import user_of
from apps.api.parsers import check_value
from apps.api.problems import status_of
from apps.errors import DomainError, Invalid, words_of
from apps.jobs.checking import NeverFits
from apps.jobs.launch.forms import LaunchForm
from apps.jobs.pages.comparison import tags_of
from apps.jobs.selectors import job_for
from apps.namespaces.context import current_namespace
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from apps.sweeps.forms import SweepForm
from apps.sweeps.services import sweep_create
from yardmaster.errors import Problem, SpecRejected, YardmasterError
from yardmaster.job.spec_stored import sent_form

LONGEST_BASE = 1 << 20
WARNINGS_SHOWN = 3
Place = dict[str, str]


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def sweep_new(request: HttpRequest) -> HttpResponse:
    """GET: the form, for the job `from`, or what a sweep is. POST: the same for the launch form that was sent, one more
    row, or the sweep."""
    if request.method != "POST":
        return _first(request)
    if "base" not in request.POST:
        launch = LaunchForm(request.POST)
        base, texts = launch.spec, launch.texts()
        place = {"namespace": texts["namespace"], "engine": texts["engine"]}
        return _page(request, SweepForm(base=base), base, place, tags=[])
    base, place = _base_of(request.POST["base"])
    form = SweepForm(request.POST, base=base, more=request.POST.get("take") == "add")
    if request.POST.get("take"):
        return _page(request, form, base, place, tags=[])
    return _made(request, form, base, place)


def _first(request: HttpRequest) -> HttpResponse:
    """A job that has no form of its own is none to be swept."""
    if not request.GET.get("from"):
        return render(request, "sweeps/how.html", {"breadcrumbs": _way()})
    job = job_for(user_of(request), request.GET["from"])
    base = sent_form(job.spec)
    return _page(
        request,
        SweepForm(base=base),
        base,
        {"namespace": job.namespace.slug, "engine": job.engine},
        tags=tags_of([job]),
    )


def _made(request: HttpRequest, form: SweepForm, base: dict[str, Any], place: Place) -> HttpResponse:
    """The page of the new sweep, or the form with everything that is wrong."""
    status, asks = 422, False
    user = user_of(request)
    try:
        if form.is_valid():
            said = base | {"name": form.cleaned_data["name"] or base.get("name", "")}
            sweep, warnings = sweep_create(
                user=user,
                namespace=namespace_for(user, place["namespace"] or None, at_least=Role.MEMBER),
                base=said,
                plan=form.plan(),
                engine=place["engine"] or None,
                request_key=_request_key(request, str(user.pk)),
                accept_never_fits=bool(request.POST.get("accept_never_fits")),
            )
            messages.success(request, f"Created the sweep {sweep.name} of {sweep.count} trials.")
            for warning in warnings[:WARNINGS_SHOWN]:
                messages.warning(request, f"{warning.message} {warning.remedy}")
            return redirect("sweep_page", sweep.pk)
    except SpecRejected as error:
        form.add_problems(error.problems)
    except Invalid as error:
        form.add_problems(error.errors)
    except NeverFits as error:
        form.add_error(None, words_of(error))
        status, asks = status_of(error), True
    except DomainError as error:
        form.add_error(None, words_of(error))
        status = status_of(error)
    except YardmasterError as error:
        form.add_error(None, words_of(error))
        status = 503
    return _page(request, form, base, place, tags=[], status=status, asks=asks)


def _page(
    request: HttpRequest, form: SweepForm, base: Mapping[str, Any], place: Place, *, tags: list[str],
    status: int = 200, asks: bool = False,
) -> HttpResponse:  # fmt: skip
    context = {
        "form": form,
        "base": json.dumps({"spec": base, "place": place}),
        "job_name": base.get("name") or "the job",
        "namespace": place["namespace"] or current_namespace(request).slug,
        "arguments": [one for one in base.get("arguments", []) if isinstance(one, str)],
        "tags": tags,
        "form_id": request.POST.get("form") or secrets.token_hex(16),
        "asks": asks,
        "limits": settings.YARDMASTER_SWEEPS,
        "breadcrumbs": _way(),
    }
    return render(request, "sweeps/new.html", context, status=status)


def _base_of(text: str) -> tuple[dict[str, Any], Place]:
    """What the form's hidden field holds. Raises `Invalid` where it is not as the page wrote it."""
    try:
        said: Any = json.loads(text) if len(text) <= LONGEST_BASE else {}
        check_value(said)
        json.dumps(said, allow_nan=False)
        base, place = said["spec"], said["place"]
        is_job = isinstance(base, dict) and isinstance(base.get("arguments", []), list)
        if is_job and all(isinstance(place[key], str) for key in ("namespace", "engine")):
            return base, {key: place[key] for key in ("namespace", "engine")}
    except (ValueError, TypeError, KeyError, RecursionError, ParseError):
        pass  # refused below, as what is no job is
    raise Invalid([Problem("base", "invalid", "The job in the form cannot be read.", "Begin with a job again.")])


def _request_key(request: HttpRequest, user: str) -> str:
    """The same for the same form sent twice: pressing the button twice makes one sweep."""
    said = json.dumps(sorted((key, one) for key, one in request.POST.items() if key != "csrfmiddlewaretoken"))
    whole = f"{user}\n{said}"
    return f"page:{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _way() -> list[tuple[str, str]]:
    return [(reverse("sweeps_page"), "Sweeps")]
