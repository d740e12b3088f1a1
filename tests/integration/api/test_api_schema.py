"""The OpenAPI document: whole, without a warning, and true of problems and keys."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from rest_framework.serializers import ModelSerializer, SerializerMethodField

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def schema():
    return json.loads(Client().get("/api/v1/schema/").content)


def test_it_is_generated_without_a_warning(capsys):
    call_command("spectacular", fail_on_warn=True, validate=True, file="/dev/null", stdout=StringIO())


def test_everybody_may_read_it(schema):
    assert schema["openapi"].startswith("3.1")
    assert "/api/v1/me/" in schema["paths"]


def test_every_operation_tells_of_problems_and_belongs_to_a_group(schema):
    operations = [op for path in schema["paths"].values() for name, op in path.items() if name != "parameters"]
    assert operations
    for operation in operations:
        assert "application/problem+json" in operation["responses"]["default"]["content"], operation["operationId"]
        assert operation["tags"]


def test_posts_tell_of_the_idempotency_key(schema):
    names = {parameter["name"] for parameter in schema["paths"]["/api/v1/users/"]["post"]["parameters"]}
    assert "Idempotency-Key" in names


def test_lists_tell_of_their_pages(schema):
    names = {parameter["name"] for parameter in schema["paths"]["/api/v1/users/"]["get"]["parameters"]}
    assert {"cursor", "page_size"} <= names
    body = schema["paths"]["/api/v1/users/"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert "Paginated" in body["$ref"]


def test_requests_name_every_key_they_take(schema):
    assert schema["components"]["schemas"]["NewTokenRequest"]["additionalProperties"] is False


def _answer_of(schema, path, method, status):
    return schema["paths"][path][method]["responses"][status]["content"]["application/json"]["schema"]


def test_only_lists_that_are_asked_for_come_in_pages(schema):
    assert _answer_of(schema, "/api/v1/namespaces/{namespace_id}/members/many/", "post", "201")["type"] == "array"
    assert _answer_of(schema, "/api/v1/quotas/scheduled/", "post", "201")["type"] == "array"
    assert _answer_of(schema, "/api/v1/dataset-versions/{version_id}/volume/", "get", "200")["type"] == "array"
    assert "Paginated" in _answer_of(schema, "/api/v1/quotas/scheduled/", "get", "200")["$ref"]


def test_a_budget_that_is_taken_away_answers_the_default_one(schema):
    assert "Budget" in _answer_of(schema, "/api/v1/namespaces/{namespace_id}/budget/", "delete", "200")["$ref"]


def _kinds(kind):
    for one in kind.__subclasses__():
        yield one
        yield from _kinds(one)


def test_fields_of_columns_that_may_be_null_say_so(schema):
    silent = set()
    for kind in _kinds(ModelSerializer):
        if not kind.__module__.startswith("apps.") or not hasattr(kind, "Meta"):
            continue
        nullable = {one.name for one in kind.Meta.model._meta.fields if one.null}
        silent |= {
            f"{kind.__name__}.{name}"
            for name, field in kind().fields.items()
            if field.source in nullable and not field.allow_null and not isinstance(field, SerializerMethodField)
        }
    assert not silent
