"""Home: what runs, what waits and why, what failed lately, how much of the quota is taken, and the first steps."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


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
