"""Each valid body that `make fuzz` begins with is accepted, so that what it spoils goes as far as it can."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from tests.fuzz.bodies import QUERIES
from tests.fuzz.operations import operations
from tests.fuzz.world import FuzzWorld, undone

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

OTHERWISE = {
    "model_versions_predict_create": "no server of a model runs here",
    "model_versions_classify_create": "no server of a model runs here",
    "model_versions_regress_create": "no server of a model runs here",
    "stage_model_predict": "no server of a model runs here",
    "service_model_predict": "no server of a model runs here",
    "auth_device_token_create": "the code of a sign-in that someone has confirmed",
    "namespaces_volumes_create": "the local engine has no volumes",
    "task_published_create": "the job publishes nothing",
    "task_uploads_parts_create": "the upload has no files yet",
    "uploads_parts_create": "the file of the upload is complete",
    "uploads_files_create": "its path is not behind those of the thousand before it",
}
"""Bodies that are as they should be, and what they are refused for."""


def test_every_valid_request_is_accepted(fuzzed: FuzzWorld):
    refused = {name: said for name in fuzzed.bodies.keys() - OTHERWISE if (said := refusal_of(fuzzed, name))}
    assert not refused, "\n".join(f"{name}: {said}" for name, said in refused.items())


def refusal_of(world: FuzzWorld, name: str) -> str:
    method, path = operations()[name]
    address = path.format(**world.path_parameters(path, name))
    with undone():
        answer = Client(raise_request_exception=False).generic(
            method.upper(), address, json.dumps(world.bodies[name]), "application/json",
            headers=world.headers("administrator", path), query_params=QUERIES.get(name),
        )  # fmt: skip
        content = b"".join(answer) if answer.streaming else answer.content
    return "" if answer.status_code < 400 else f"{answer.status_code}: {content.decode()[:600]}"
