"""`/client/`: how the command is installed, and the wheel itself. Open to all: pip has no sign-in, and the wheel holds
no secret.

The page is an index that pip, uv and pipx read too (`--find-links`): its link ends in the wheel's checksum.
"""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_safe

from apps.client.versions import install_command, login_command
from apps.client.wheel import DISTRIBUTION, PYTHON, REQUIREMENTS, wheel
from yardmaster_client.version import VERSION

EXAMPLE = """\
from yardmaster_client import Yardmaster

portal = Yardmaster.from_environment()
for job in portal.jobs.list(phase="RUNNING"):
    print(job.name, job.progress)"""


@require_safe
def client(request: HttpRequest) -> HttpResponse:
    """The page."""
    found = wheel()
    address = f"{settings.PUBLIC_URL}/client/"
    context = {
        "wheel": found,
        "version": VERSION,
        "python": PYTHON.removeprefix(">="),
        "requirements": [one.partition(">")[0] for one in REQUIREMENTS],
        "install": install_command(),
        "others": [
            ("uv", f"uv tool install {address}{found.name}"),
            ("pipx", f"pipx install {address}{found.name}"),
            ("In a requirements.txt", f"{DISTRIBUTION} @ {address}{found.name}#sha256={found.sha256}"),
        ],
        "login": login_command(),
        "example": EXAMPLE,
    }
    return render(request, "client/client.html", context)


@require_safe
def client_wheel(request: HttpRequest, name: str) -> HttpResponse:
    """The wheel, whole. It is asked for again each time, and sent only where it has changed: another wheel may have the
    same name while a version is being made."""
    found = wheel()
    if name != found.name:
        raise Http404(f"This portal serves {found.name} alone.")
    etag = f'"{found.sha256}"'
    if request.headers.get("If-None-Match") == etag:
        response: HttpResponse = HttpResponseNotModified()
    else:
        response = HttpResponse(found.content, content_type="application/zip")
        response.headers["Content-Length"] = str(len(found.content))
        response.headers["Content-Disposition"] = f'attachment; filename="{found.name}"'
    response.headers["ETag"] = etag
    response.headers["Cache-Control"] = "public, no-cache"
    return response


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("client/", client, name="client_page"),
    path("client/<str:name>", client_wheel, name="client_wheel"),
]
