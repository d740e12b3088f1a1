"""Every error of the API as `application/problem+json` (RFC 9457), with a code that programs may rely on.

Services raise a `DomainError` or a `YardmasterError`, which know nothing of HTTP; `problem_of` translates those, Django
REST framework's errors and Django's own. What exists only in HTTP (a media type, a header) is raised as `ApiProblem`.
Not here: failures outside a view (`outside`).
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import DataError, InterfaceError, OperationalError
from django.forms import BaseForm
from django.http import Http404, UnreadablePostError
from redis.exceptions import ConnectionError as BrokerConnectionError
from redis.exceptions import TimeoutError as BrokerTimeout
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.settings import api_settings

from apps import errors
from apps.errors import DomainError, words_of
from yardmaster.errors import Misconfigured, Problem, QuotaFull, SpecRejected, Unavailable, YardmasterError

log = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 5
_LONGEST_VALUE = 200
_TENSORFLOW_SERVING = re.compile(r"/api/v1/(?:services/[^/]+|models/[^/]+/stages/[^/]+)/v1/")

OUTAGES = (OperationalError, InterfaceError, BrokerConnectionError, BrokerTimeout)
"""What a database or broker that does not answer raises."""


class ApiProblem(Exception):
    """An answer other than success."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        remedy: str = "",
        errors: Iterable[Problem] = (),
        headers: Mapping[str, str] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.remedy = remedy
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.facts = dict(facts or {})
        """What programs may want to know beside the keys that every problem has: further members of the answer."""


_STATUS: Mapping[type[DomainError], int] = {
    errors.DomainError: 400,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Gone: 410,
    errors.Invalid: 400,
    errors.Unprocessable: 422,
    errors.Forbidden: 403,
    errors.TooLarge: 413,
    errors.TooMany: 429,
}
"""The status of each kind of error, and of the kinds that derive from it."""


def shorten(value: object) -> str:
    """What stood in a field, as far as it helps to see it."""
    text = value if isinstance(value, str) else "" if value is None else repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def body_of(error: ApiProblem | DomainError) -> dict[str, Any]:
    """The JSON of a problem. Every key is always there."""
    problem = answer_to(error)
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


def body_at(path: str, error: ApiProblem | DomainError) -> dict[str, Any]:
    """The same at this address: clients of TensorFlow Serving read `error`."""
    body = body_of(error)
    if is_of_serving(path):
        body["error"] = f"{body['detail']} {body['remedy']}".strip()
    return body


def is_of_serving(path: str) -> bool:
    """Whether clients of TensorFlow Serving ask at this address."""
    return _TENSORFLOW_SERVING.match(path) is not None


def answer(error: Exception, context: dict[str, Any]) -> Response | None:
    """Django REST framework's exception handler. None for an unexpected error: Django then answers 500 and logs it."""
    problem = problem_of(error)
    if problem is None:
        return None
    request = context.get("request")
    if request is not None:
        # Also where the view itself answers with text or bytes, a problem is JSON.
        request.accepted_renderer = JSONRenderer()
        request.accepted_media_type = "application/json"
    body = body_of(problem) if request is None else body_at(request.path, problem)
    return Response(body, status=problem.status, content_type=CONTENT_TYPE, headers=problem.headers)


def problem_of(error: BaseException) -> ApiProblem | None:
    """The problem that an error means, or None where it means none."""
    match error:
        case ApiProblem() | DomainError():
            return answer_to(error)
        case YardmasterError():
            return _of_the_core(error)
        case exceptions.APIException():
            return _of_the_framework(error)
        case Http404():
            return answer_to(errors.NotFound())
        case PermissionDenied():
            return answer_to(errors.Forbidden("You do not have permission for this."))
        case DjangoValidationError():
            return answer_to(errors.Invalid(_of_validation(error)))
        case RequestDataTooBig():
            detail = "The body of the request is too large."
            return answer_to(errors.TooLarge(detail, remedy="Send less per request. Upload files in parts."))
        case SuspiciousOperation() | UnreadablePostError():
            return ApiProblem(400, "malformed", "The request cannot be read.")
        case DataError():
            log.warning("A value reached the database that it does not take: %s", error)
            return answer_to(errors.Invalid([], "A value is too large or too long."))
        case _ if isinstance(error, OUTAGES):
            log.error("Something the portal needs does not answer: %s", error, exc_info=error)
            return unavailable("The portal cannot reach its database or message broker right now.")
    return None


def answer_to(error: DomainError | ApiProblem) -> ApiProblem:
    """The answer that an error of a service means; one that is an answer already is returned as it is."""
    if isinstance(error, ApiProblem):
        return error
    headers = {"Retry-After": str(error.wait)} if isinstance(error, errors.TooMany) else {}
    return ApiProblem(
        status_of(error), error.code, error.detail, remedy=error.remedy, errors=error.errors, headers=headers,
        facts=error.facts,
    )  # fmt: skip


def status_of(error: DomainError) -> int:
    """The HTTP status of such an error."""
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


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
    "throttled": "Wait for the time in the Retry-After header.",
}


def _of_the_framework(error: exceptions.APIException) -> ApiProblem:
    if isinstance(error, exceptions.ValidationError):
        return answer_to(errors.Invalid(flatten(error.detail)))
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


def show_in_form(form: BaseForm, problem: DomainError, *, otherwise: str | None = None) -> None:
    """Add the problem to the form: each error at its field; what belongs to none at `otherwise` (None: above all)."""
    for error in problem.errors:
        field = error.field if error.field in form.fields else otherwise
        form.add_error(field, f"{error.message} {error.remedy}".strip())
    if not problem.errors:
        form.add_error(otherwise, words_of(problem))
