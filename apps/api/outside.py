"""Failures that Django itself answers, before or beside the views: problems below `/api/`, pages elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve

from apps.api.problems import CONTENT_TYPE, ApiProblem, answer_to, body_of, problem_of
from apps.errors import DomainError, NotFound

MAINTENANCE = "maintenance.html"


def problem_response(request: HttpRequest, problem: ApiProblem, template: str = "problem.html") -> HttpResponse:
    """A problem as a page, a part of a page, or JSON, whichever was asked for."""
    if request.path.startswith("/api/"):
        return JsonResponse(body_of(problem), status=problem.status, content_type=CONTENT_TYPE, headers=problem.headers)
    if "HX-Request" in request.headers:  # a part of a page: the script shows the words as a note
        words = f"{problem.detail} {problem.remedy}".strip()
        headers = {**problem.headers, "Content-Type": "text/plain; charset=utf-8"}
        return HttpResponse(words, status=problem.status, headers=headers)
    if problem.status >= 500:
        # Without the request: what its context processors need may be the very thing that is broken.
        page = render_to_string(MAINTENANCE if problem.status == 503 else template, {"problem": problem})
        return HttpResponse(page, status=problem.status, headers=problem.headers)
    return render(request, template, {"problem": problem}, status=problem.status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, DisallowedHost):
        # With a code of its own: the caller may have reached the portal under a name that is not its own.
        detail = "The portal does not accept this host name."
        remedy = "Use the portal's own URL, or ask an administrator to add the name to YARDMASTER_ALLOWED_HOSTS."
        return problem_response(request, ApiProblem(400, "host_refused", detail, remedy=remedy))
    problem = problem_of(exception) or ApiProblem(400, "malformed", "The request cannot be read.")
    return problem_response(request, problem)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problem_response(request, ApiProblem(403, "permission_denied", "You do not have permission for this."))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    detail = "This form has expired, or was sent from another site."
    remedy = "Go back, reload the page and submit the form again. Cookies must be allowed."
    return problem_response(request, ApiProblem(403, "csrf_failed", detail, remedy=remedy))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problem_response(request, answer_to(NotFound("This page does not exist, or is not visible to you.")))


def server_error(request: HttpRequest) -> HttpResponse:
    """A bug, or something the portal needs is away. The traceback is in the portal's log, never in the answer."""
    error = sys.exc_info()[1]
    problem = problem_of(error) if error is not None else None
    if problem is None or problem.status < 500:
        detail = "An internal error occurred. It was written to the portal's log."
        problem = ApiProblem(500, "error", detail, remedy="If it persists, tell an administrator when it happened.")
    return problem_response(request, problem, "problem_500.html")


def unknown_address(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Any address below `/api/` that nothing else answers."""
    remedy = ""
    if not request.path.endswith("/"):
        try:
            match = resolve(f"{request.path}/")
        except Resolver404:
            match = None
        if match is not None and match.func is not unknown_address:
            remedy = f"Addresses end in a slash: {request.path}/"
    return problem_response(request, answer_to(NotFound(f"There is nothing at {request.path[:200]}", remedy=remedy)))


class ProblemsOfPages:
    """Middleware: a page that meets a problem of a service or selector shows it; the API's views do so themselves."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, ApiProblem | DomainError):
            return problem_response(request, answer_to(error))
        return None


class RefuseNulCharacters:
    """Middleware: no path and no query holds a NUL, which databases refuse only deep inside a view."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "\x00" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            problem = ApiProblem(400, "malformed", "A URL cannot contain a NUL character.", remedy="Leave it out.")
            return JsonResponse(body_of(problem), status=400, content_type=CONTENT_TYPE)
        return self.get_response(request)
