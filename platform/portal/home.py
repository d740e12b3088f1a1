"""Home: what runs, what waits and why, what failed lately, how much of the quota is taken, and the first steps.

Everything is of the one namespace that the reader works in. Refreshed (by htmx), only the part that moves is sent.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from apps.accounts.models import User
from apps.accounts.selectors import tokens_of
from apps.administration.usage import quota_rows, usage_of
from apps.client.versions import install_command
from apps.code.models import Code
from apps.datasets.models import Dataset
from apps.jobs.pages.overview import has_jobs, overview_of
from apps.namespaces.context import current_namespace
from apps.namespaces.models import Namespace
from apps.registry.models import ModelVersion
from apps.registry.selectors import MODELS
from apps.workbench.overview import overview_of as workbench_overview

MODELS_SHOWN = 5


@dataclass(frozen=True)
class Step:
    """One of the first things a newcomer does: on a page, or with the command."""

    title: str
    text: str
    command: str
    url: str
    action: str
    is_done: bool


@login_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The page; for htmx only what moves."""
    assert isinstance(request.user, User)
    namespace = current_namespace(request)
    overview = overview_of(namespace, timezone.now())
    is_part = "HX-Request" in request.headers
    is_new = overview.is_quiet and not has_jobs(namespace)
    steps = first_steps(request.user, namespace) if is_new else None
    context = {
        "is_part": is_part,
        "overview": overview,
        "quota": quota_rows(usage_of(namespace)),
        "models": [] if is_new else _models_of(namespace),
        "steps": steps,
        "next_step": next((step for step in steps or () if not step.is_done), None),
        "install_command": install_command(),
        "is_team": namespace.owner_id is None,
        "workbench": workbench_overview(request.user, namespace, timezone.now()),
    }
    response = render(request, "home/live.html" if is_part else "home/home.html", context)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _models_of(namespace: Namespace) -> list[ModelVersion]:
    made = ModelVersion.objects.filter(MODELS.live_versions, parent__namespace=namespace)
    return list(made.select_related("parent").order_by("-pk")[:MODELS_SHOWN])


def first_steps(user: User, namespace: Namespace) -> list[Step]:
    """From nothing to a trained model; what was done already is marked."""
    place = f" --namespace {namespace.slug}" if namespace.owner_id != user.pk else ""
    return [
        Step(
            "Upload a dataset",
            "Drag and drop files or folders. The command converts scikit-learn's digits to TFRecord files.",
            f"python examples/digits/prepare.py ./shards\nyardmaster datasets upload ./shards --name digits{place}",
            reverse("dataset_upload_page"),
            "Upload a dataset",
            Dataset.objects.filter(namespace=namespace).exists(),
        ),
        Step(
            "Upload your training code",
            "A folder with your script. It is checked for common mistakes before launch.",
            f"yardmaster code upload examples/digits --name digits{place}",
            reverse("code_upload_page"),
            "Upload code",
            Code.objects.filter(namespace=namespace).exists(),
        ),
        Step(
            "Launch a job and watch it train",
            "Choose the number of parameter servers and workers. Log and scalars are live.",
            f"yardmaster jobs launch examples/digits/between_graph.yaml --follow{place}",
            reverse("launch_page"),
            "Launch a job",
            False,
        ),
        Step(
            "Use the command line",
            "From your own machine. It can do everything that these pages do. Sign in once, in the browser.",
            f"{install_command()}\nyardmaster login {settings.PUBLIC_URL}",
            reverse("client_page"),
            "Other ways",
            tokens_of(user).exists(),
        ),
    ]
