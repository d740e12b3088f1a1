"""The OpenAPI document: whole, without a warning, and true of problems and keys."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

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
