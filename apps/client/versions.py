"""Which clients this portal serves, and what each side is told of the other.

A client names its version and its API in a header; who sends none (curl, scripts, browsers) is served as ever. A client
that is too old is refused with the command that updates it, before anything is looked up for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from apps.api.outside import problem_response
from apps.api.problems import ApiProblem
from apps.client.wheel import FILE_NAME
from yardmaster_client.version import ANSWERED, API, HEADER, VERSION

OLDEST = "0.1.0"
"""The oldest client that is served: raise it where the API no longer does what an older one needs."""
_SAID = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})[\w.+-]{0,40}; api=(\d{1,4})", re.ASCII)


def install_command() -> str:
    """What installs the client of this portal, also in the place of another version."""
    return f"pip install {settings.PUBLIC_URL}/client/{FILE_NAME}"


def login_command() -> str:
    """What signs the client in here."""
    return f"yardmaster login {settings.PUBLIC_URL}"


def refusal_of(said: str) -> ApiProblem | None:
    """Why the client that says this of itself is not served; None: it is."""
    found = _SAID.fullmatch(said.strip())
    if found is None:
        detail = f"The header {HEADER} is not readable."
        return ApiProblem(
            400, "client_unknown", detail, remedy=f"Send it such as `{VERSION}; api={API}`, or leave it out."
        )
    version, api = tuple(int(found[part]) for part in (1, 2, 3)), int(found[4])
    name = ".".join(map(str, version))
    facts = {"client": name, "oldest_client": OLDEST, "portal": VERSION, "command": install_command()}
    if version < _numbers(OLDEST) or api < API:
        detail = f"This client, {name}, is too old for the portal, which needs {OLDEST} or newer."
        return ApiProblem(426, "client_too_old", detail, remedy=f"Update it: {install_command()}", facts=facts)
    if api > API:
        detail = f"This client, {name}, needs version {api} of the API. The portal has version {API}."
        remedy = f"Install the client of this portal: {install_command()}"
        return ApiProblem(426, "client_too_new", detail, remedy=remedy, facts=facts)
    return None


class NegotiateVersions:
    """Middleware, for the API alone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        said = request.headers.get(HEADER)
        if said is None or not request.path.startswith("/api/"):
            return self.get_response(request)
        problem = refusal_of(said[:200])
        response = self.get_response(request) if problem is None else problem_response(request, problem)
        response.headers[ANSWERED] = f"{VERSION}; api={API}; oldest-client={OLDEST}"
        return response


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
