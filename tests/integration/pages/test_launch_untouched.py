"""The launch form calls nothing wrong before its reader was there."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from tests.integration.jobs.conftest import engine_settings, stores, world

__all__ = ["engine_settings", "stores", "world"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def ask(world, ada, client: Client):
    """What is answered to a new form that is empty, with these changes."""
    client.force_login(ada)
    page = client.get("/jobs/launch/").content.decode()
    fields: dict[str, Any] = dict(re.findall(r'name="([^"]+)"[^>]*value="([^"]*)"', page))

    def answer(path: str = "preview/", **changes: str) -> str:
        data = fields | {"touched": "", "strategy": "between_graph", "runs": "file"} | changes
        return client.post(f"/jobs/launch/{path}", data, headers={"HX-Request": "true"}).content.decode()

    return answer


def test_an_empty_form_is_not_complete_and_no_field_is_wrong(ask):
    page = ask()
    assert "Fill in the required fields first." in page
    assert "needs a correction" not in page


@pytest.mark.parametrize(
    ("name", "message"),
    [("name", "Enter a name for the job."), ("code", "Choose a code version."), ("entry_point", "launch-list")],
)
def test_a_field_that_was_left_empty_is_called_wrong_and_no_other(ask, name, message):
    page = ask(touched=f" {name}")
    assert "1 field needs a correction." in page
    assert message in page


@pytest.mark.parametrize("preset", ["single", "in_graph", "batch", "parameter_server"])
def test_another_strategy_calls_nothing_wrong(ask, preset):
    page = ask("", take="preset", strategy=preset)
    assert "is-invalid" not in page
    assert "invalid-feedback" not in page
