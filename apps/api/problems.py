"""Every error of the API as `application/problem+json` (RFC 9457), with a code that programs may rely on.

Services raise `ApiProblem` or a `YardmasterError`; `answer` translates those, Django REST framework's and Django's own.
Not here: failures outside a view (`pages`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from redis.exceptions import ConnectionError as BrokerConnectionError
from redis.exceptions import TimeoutError as BrokerTimeout
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.settings import api_settings

from yardmaster.errors import Misconfigured, Problem, QuotaFull, SpecRejected, Unavailable, YardmasterError

log = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 5
_LONGEST_VALUE = 200

OUTAGES = (OperationalError, InterfaceError, BrokerConnectionError, BrokerTimeout)
"""What a database or broker that does not answer raises."""


class ApiProblem(Exception):
    """An answer other than success, raised from anywhere below a view."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        remedy: str = "",
        errors: Iterable[Problem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.remedy = remedy
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.facts: Mapping[str, Any] = {}
        """What programs may want to know beside the keys that every problem has: further members of the answer."""


class NotFound(ApiProblem):
    """There is no such thing, or none that the caller may know of: both sound the same."""

    def __init__(
        self, detail: str = "There is no such object, or it is not yours to see.", *, remedy: str = ""
    ) -> None:
        super().__init__(404, "not_found", detail, remedy=remedy)


class Conflict(ApiProblem):
    """The request is fine, but not in the present state."""

    def __init__(self, detail: str, code: str = "conflict", *, remedy: str = "") -> None:
        super().__init__(409, code, detail, remedy=remedy)


class Gone(ApiProblem):
    """It was there, and is deleted: whoever still writes to it is to stop."""

    def __init__(self, detail: str, code: str = "job_gone") -> None:
        super().__init__(410, code, detail)


class Invalid(ApiProblem):
    """What was sent is not valid. `errors` names every field at fault."""

    def __init__(self, errors: Iterable[Problem], detail: str = "") -> None:
        errors = tuple(errors)
        super().__init__(400, "invalid", detail or _summary(errors), errors=errors)


class Forbidden(ApiProblem):
    """The caller may see the thing but not do this."""

    def __init__(self, detail: str, remedy: str = "") -> None:
        super().__init__(403, "permission_denied", detail, remedy=remedy)


class QuotaExceeded(ApiProblem):
    """It does not fit into the namespace's quota now."""

    def __init__(self, detail: str, *, remedy: str = "", errors: Iterable[Problem] = ()) -> None:
        super().__init__(409, "quota_full", detail, remedy=remedy, errors=errors)


class TooLarge(ApiProblem):
    """More bytes than this address takes."""

    def __init__(self, detail: str, *, remedy: str = "") -> None:
        super().__init__(413, "too_large", detail, remedy=remedy)


class TooMany(ApiProblem):
    """More than this caller may do now."""

    def __init__(self, detail: str, code: str, *, wait: int, headers: Mapping[str, str] | None = None) -> None:
        unit = "second" if wait == 1 else "seconds"
        remedy = f"Try again in {wait} {unit}."
        super().__init__(429, code, detail, remedy=remedy, headers={"Retry-After": str(wait), **(headers or {})})


def _summary(errors: tuple[Problem, ...]) -> str:
    return "; ".join(f"{p.field}: {p.message}" if p.field else p.message for p in errors) or "The request is not valid."


def shorten(value: object) -> str:
    """What stood in a field, as far as it helps to see it."""
    text = value if isinstance(value, str) else "" if value is None else repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def body_of(problem: ApiProblem) -> dict[str, Any]:
    """The JSON of a problem. Every key is always there."""
    try:
        title = HTTPStatus(problem.status).phrase
    except ValueError:
        title = "Error"
    return {
        "type": "about:blank",
        "title": title,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "remedy": problem.remedy,
        "errors": [
            {"field": p.field, "code": p.code, "message": p.message, "remedy": p.remedy, "value": shorten(p.value)}
            for p in problem.errors
        ],
        **problem.facts,
    }


def answer(error: Exception, context: dict[str, Any]) -> Response | None:
    """Django REST framework's exception handler. None for what nobody foresaw: Django then answers 500 and logs it."""
    problem = problem_of(error)
    if problem is None:
        return None
    request = context.get("request")
    if request is not None:
        # Also where the view itself answers with text or bytes, a problem is JSON.
        request.accepted_renderer = JSONRenderer()
        request.accepted_media_type = "application/json"
    return Response(body_of(problem), status=problem.status, content_type=CONTENT_TYPE, headers=problem.headers)


def problem_of(error: BaseException) -> ApiProblem | None:
    """The problem that an error means, or None where it means none."""
    match error:
        case ApiProblem():
            return error
        case YardmasterError():
            return _of_the_core(error)
        case exceptions.APIException():
            return _of_the_framework(error)
        case Http404():
            return NotFound()
        case PermissionDenied():
            return Forbidden("You may not do this.")
        case DjangoValidationError():
            return Invalid(_of_validation(error))
        case RequestDataTooBig():
            return TooLarge("The body of the request is too large.", remedy="Send less at once; files go up in parts.")
        case SuspiciousOperation() | UnreadablePostError():
            return ApiProblem(400, "malformed", "The request cannot be read.")
        case DataError():
            log.warning("A value reached the database that it does not take: %s", error)
            return Invalid([], "A value is too large or too long.")
        case _ if isinstance(error, OUTAGES):
            log.error("Something the portal needs does not answer: %s", error, exc_info=error)
            return unavailable("The portal cannot reach its database or message broker right now.")
    return None


def unavailable(detail: str, remedy: str = "Try again in a few seconds.") -> ApiProblem:
    return ApiProblem(503, "unavailable", detail, remedy=remedy, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})


def _of_the_core(error: YardmasterError) -> ApiProblem:
    match error:
        case SpecRejected():
            return ApiProblem(422, error.code, error.message, remedy=error.remedy, errors=error.problems)
        case QuotaFull():
            return ApiProblem(409, error.code, error.message, remedy=error.remedy)
        case Unavailable():
            problem = unavailable(error.message, error.remedy or "Try again in a few seconds.")
            problem.code = error.code
            return problem
        case Misconfigured():
            log.error("The portal is misconfigured: %s", error.message)
            return ApiProblem(500, error.code, error.message, remedy=error.remedy or "Tell an administrator.")
    return ApiProblem(400, error.code, error.message, remedy=error.remedy)


_CODES = {
    exceptions.ParseError: "malformed",
    exceptions.NotAuthenticated: "not_authenticated",
    exceptions.AuthenticationFailed: "not_authenticated",
    exceptions.PermissionDenied: "permission_denied",
    exceptions.NotFound: "not_found",
    exceptions.MethodNotAllowed: "method_not_allowed",
    exceptions.NotAcceptable: "not_acceptable",
    exceptions.UnsupportedMediaType: "unsupported_media_type",
    exceptions.Throttled: "throttled",
}
_REMEDIES = {
    "not_authenticated": "Sign in, or send `Authorization: Bearer <personal token>`.",
    "unsupported_media_type": "Send JSON with `Content-Type: application/json`.",
    "throttled": "Wait as long as the header Retry-After says.",
}


def _of_the_framework(error: exceptions.APIException) -> ApiProblem:
    if isinstance(error, exceptions.ValidationError):
        return Invalid(flatten(error.detail))
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), "error")
    headers = {}
    if wait := getattr(error, "wait", None):  # of a throttled request, in seconds
        headers["Retry-After"] = str(math.ceil(wait))
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    return ApiProblem(error.status_code, code, str(error.detail), remedy=_REMEDIES.get(code, ""), headers=headers)


def flatten(detail: Any, field: str = "") -> list[Problem]:
    """A serializer's nested errors as a flat list with dotted fields (`roles.0.cpu`)."""
    if isinstance(detail, Mapping):
        return [problem for key, value in detail.items() for problem in flatten(value, _join(field, str(key)))]
    if isinstance(detail, (list, tuple)):
        if any(isinstance(item, (Mapping, list, tuple)) for item in detail):
            return [p for i, item in enumerate(detail) if item for p in flatten(item, _join(field, str(i)))]
        return [problem for item in detail for problem in flatten(item, field)]
    return [Problem(field=field, code=getattr(detail, "code", "invalid"), message=str(detail))]


def _join(field: str, key: str) -> str:
    if key == api_settings.NON_FIELD_ERRORS_KEY:
        return field
    return f"{field}.{key}" if field else key


def _of_validation(error: DjangoValidationError) -> list[Problem]:
    if hasattr(error, "error_dict"):
        return [
            Problem(field="" if field == "__all__" else field, code=one.code or "invalid", message=message)
            for field, errors in error.error_dict.items()
            for one in errors
            for message in one.messages
        ]
    return [Problem(field="", code=getattr(error, "code", None) or "invalid", message=m) for m in error.messages]
