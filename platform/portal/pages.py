"""The pages that people see, and their addresses. What they show they read over the API, like every other client.

Not here: signing in by link (`apps.accounts.pages`); the other pages of accounts are allauth's.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, include, path

from apps.accounts import pages as accounts
from apps.accounts.models import User
from apps.jobs.selectors import job_for


@dataclass(frozen=True)
class Step:
    """One of the first things a newcomer does."""

    title: str
    text: str
    command: str


def first_steps() -> list[Step]:
    return [
        Step(
            "Sign in on the command line",
            "It asks for your name and password, and keeps a token.",
            f"yardmaster login --url {settings.PUBLIC_URL}",
        ),
        Step(
            "Upload a dataset",
            "Here scikit-learn's handwritten digits, made into TFRecord files.",
            "python examples/digits/prepare.py ./shards\nyardmaster datasets upload ./shards --name digits",
        ),
        Step(
            "Launch a job and follow its log",
            "The job file says how many workers and parameter servers there are. The job then appears here, too.",
            "yardmaster jobs launch examples/digits/between_graph.yaml --code examples/digits --follow",
        ),
    ]


@login_required
def home(request: HttpRequest) -> HttpResponse:
    return render(request, "home.html", {"first_steps": first_steps()})


@login_required
def job(request: HttpRequest, job_id: UUID) -> HttpResponse:
    assert isinstance(request.user, User)
    return render(request, "jobs/job.html", {"job": job_for(request.user, job_id)})


urlpatterns: list[URLPattern | URLResolver] = [
    path("", home, name="home"),
    path("jobs/<uuid:job_id>/", job, name="job_page"),
    path("sign-in/<str:token>/", accounts.sign_in_link, name="sign_in_link"),
    path("accounts/", include("allauth.urls")),
]
