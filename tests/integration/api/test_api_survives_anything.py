"""Whatever is sent to whatever address: never a 5xx, and every refusal is a problem."""

from __future__ import annotations

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

from apps.accounts.models import User
from apps.accounts.services import token_create
from portal.wsgi import application

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
EXAMPLES = int(os.environ.get("YARDMASTER_TEST_EXAMPLES", "3"))

schema = schemathesis.openapi.from_wsgi("/api/v1/schema/", application)


@pytest.fixture
def token(db) -> str:
    admin = User.objects.create_user("admin", is_staff=True)
    return token_create(user=admin, name="fuzz", scopes=[], expires_in=None)[1]


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_no_request_breaks_the_portal(case, token):
    response = case.call(headers={"Authorization": f"Bearer {token}"})
    case.validate_response(response, checks=[not_a_server_error, response_schema_conformance])
    if response.status_code >= 400:
        assert response.headers["content-type"] == ["application/problem+json"]
