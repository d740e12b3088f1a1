"""Whatever is sent to any address, by anyone: never a 5xx, every answer is as the schema says, and every refusal
is a problem. `make fuzz` sends more than ten thousand of these requests, and counts them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from portal.wsgi import application
from tests.fuzz.requests import prepared
from tests.fuzz.tally import STARTING, Tally
from tests.fuzz.world import FuzzWorld, undone
from tests.integration.api.conftest import ON_POSTGRES

# On PostgreSQL the populated portal brings its own database, and Django's of tests must not take its place.
_DATABASE = [pytest.mark.postgres] if ON_POSTGRES else [pytest.mark.django_db]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), *_DATABASE]
EXAMPLES = int(os.environ.get("YARDMASTER_TEST_EXAMPLES", "3"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SERVED = re.compile(r"/api/v1/(?:model-versions|services|models)/{\w+}/(?:predict|classify|regress|stages|{rest})")

config = schemathesis.Config.from_dict({"phases": {"examples": {"enabled": False}, "coverage": {"enabled": False}}})
schema = schemathesis.openapi.from_wsgi("/api/v1/schema/", application, config=config)


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    found = Tally()
    yield found
    found.keep()


@schema.given(luck=st.integers(0, 2**32))
@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_no_request_breaks_the_portal(case, luck, fuzzed: FuzzWorld, tally: Tally):
    told = prepared(case, fuzzed, luck)
    with undone():
        response = case.call(**told)
    is_starting = response.status_code == 503 and SERVED.match(case.operation.path)
    tally.add(case.operation.label, STARTING if is_starting else response.status_code)
    if is_starting:
        return
    kind = response.headers.get("content-type", [""])[0]
    is_text = kind.startswith(("application/yaml", "application/jsonl"))  # which schemathesis would read
    case.validate_response(response, checks=CHECKS[:-1] if is_text else CHECKS)
    if response.status_code >= 400:
        assert response.headers["content-type"] == ["application/problem+json"]
