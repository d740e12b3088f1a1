"""Every kind of error becomes a problem with a stable code, or none where it is a bug."""

from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation, ValidationError
from django.db import DataError, OperationalError
from django.http import Http404
from redis.exceptions import ConnectionError as BrokerGone
from rest_framework import exceptions
from rest_framework.serializers import ErrorDetail

from apps.api.problems import ApiProblem, body_of, flatten, problem_of
from apps.errors import Conflict, Invalid, NotFound, QuotaExceeded
from yardmaster.errors import Misconfigured, Problem, QuotaFull, SpecRejected, Unavailable

ONE = Problem("roles.worker.memory", "too_small", "This is too small.", "Ask for 64Mi or more.", "1")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotFound(), 404, "not_found"),
        (Conflict("no"), 409, "conflict"),
        (Conflict("no", "not_empty"), 409, "not_empty"),
        (Invalid([ONE]), 400, "invalid"),
        (QuotaExceeded("full"), 409, "quota_full"),
        (SpecRejected([ONE]), 422, "spec_rejected"),
        (QuotaFull("full"), 409, "quota_full"),
        (Unavailable("engine away"), 503, "unavailable"),
        (Misconfigured("YARDMASTER_X is wrong"), 500, "misconfigured"),
        (Http404(), 404, "not_found"),
        (PermissionDenied(), 403, "permission_denied"),
        (RequestDataTooBig(), 413, "too_large"),
        (SuspiciousOperation(), 400, "malformed"),
        (ValidationError("no"), 400, "invalid"),
        (DataError("out of range"), 400, "invalid"),
        (OperationalError("gone"), 503, "unavailable"),
        (BrokerGone("gone"), 503, "unavailable"),
        (exceptions.NotAuthenticated(), 401, "not_authenticated"),
        (exceptions.MethodNotAllowed("PUT"), 405, "method_not_allowed"),
        (exceptions.UnsupportedMediaType("text/csv"), 415, "unsupported_media_type"),
        (exceptions.Throttled(7.2), 429, "throttled"),
        (exceptions.ParseError(), 400, "malformed"),
    ],
)
def test_each_error_has_its_status_and_code(error, status, code):
    problem = problem_of(error)
    assert problem is not None
    assert (problem.status, problem.code) == (status, code)
    body = body_of(problem)
    assert set(body) == {"type", "title", "status", "code", "detail", "remedy", "errors"}
    assert body["detail"]


def test_a_bug_is_no_problem():
    assert problem_of(KeyError("x")) is None


def test_what_may_be_repeated_says_when():
    assert int(problem_of(exceptions.Throttled(7.2)).headers["Retry-After"]) == 8
    assert problem_of(Unavailable("away")).headers["Retry-After"] == "5"


def test_a_spec_tells_of_every_field_at_fault():
    body = body_of(problem_of(SpecRejected([ONE, ONE])))
    assert [error["field"] for error in body["errors"]] == ["roles.worker.memory"] * 2
    assert body["errors"][0]["remedy"] == "Ask for 64Mi or more."


def test_a_long_value_is_shown_shortened():
    body = body_of(Invalid([Problem("name", "invalid", "No.", value="x" * 10_000)]))
    assert len(body["errors"][0]["value"]) == 200


def test_nested_serializer_errors_have_dotted_fields():
    detail = {"files": [{}, {"path": [ErrorDetail("No.", "bad")]}], "non_field_errors": [ErrorDetail("Whole.", "w")]}
    assert [(p.field, p.code) for p in flatten(detail)] == [("files.1.path", "bad"), ("", "w")]


def test_an_unknown_status_has_a_title_too():
    assert body_of(ApiProblem(499, "x", "y"))["title"] == "Error"


def test_no_error_of_time_is_lost():
    assert timedelta(seconds=5) == timedelta(seconds=int(problem_of(OperationalError()).headers["Retry-After"]))
