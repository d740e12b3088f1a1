"""The data connection that a specification names."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from yardmaster.errors import SpecRejected
from yardmaster.job.spec import ConnectionInput, Role, RoleSpec, SecretInput, Strategy, TrainingSpec
from yardmaster.job.spec_connection import connection_secrets, connection_variables
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.job.spec_rules import check_spec
from yardmaster.job.spec_stored import stored_form, stored_spec

SPEC = TrainingSpec("job", Strategy.SINGLE, {Role.WORKER: RoleSpec()}, UUID(int=1), "train.py")
WITH = replace(SPEC, connection=ConnectionInput("cats", "IMAGES"))


def found(spec: TrainingSpec) -> list[tuple[str, str]]:
    return [(one.field, one.code) for one in check_spec(spec)]


def test_a_connection_survives_both_forms() -> None:
    assert spec_from_json(spec_to_json(WITH)) == WITH
    assert stored_spec(stored_form(WITH)) == WITH
    assert spec_from_json(spec_to_json(SPEC)).connection is None


def test_a_specification_of_an_older_release_has_no_connection() -> None:
    older = {key: value for key, value in stored_form(SPEC).items() if key != "connection"}
    assert stored_spec(older) == SPEC


@pytest.mark.parametrize(
    ("said", "field", "code"),
    [
        ({"cache": "IMAGES"}, "connection.name", "missing"),
        ({"name": "cats", "host": "x"}, "connection.host", "unknown_key"),
        ({"name": 3}, "connection.name", "wrong_type"),
        ({"name": "../cats"}, "connection.name", "bad_value"),
        ({"name": "cats", "cache": "a\nb"}, "connection.cache", "bad_value"),
        ({"name": "cats", "cache": "a" * 201}, "connection.cache", "bad_value"),
    ],
)
def test_what_is_no_connection_is_refused_by_its_field(said: object, field: str, code: str) -> None:
    with pytest.raises(SpecRejected) as refused:
        spec_from_json(spec_to_json(SPEC) | {"connection": said})
    assert (field, code) in [(one.field, one.code) for one in refused.value.problems]


def test_what_the_connection_decides_is_set_once() -> None:
    assert found(replace(WITH, environment={"IGNITE_DATASET_HOST": "x"})) == [
        ("environment.IGNITE_DATASET_HOST", "duplicate")
    ]
    secrets = (SecretInput("A", "IGNITE_DATASET_PASSWORD"), SecretInput("B", "", "data-connection/x.pem"))
    assert found(replace(WITH, secrets=secrets)) == [("secrets.0.env", "duplicate"), ("secrets.1.file", "duplicate")]
    assert found(replace(WITH, environment={"IGNITE_DATASET_PART": "0-3", "IGNITE_DATASET_LOCAL": "1"})) == []


def test_without_a_script_there_is_nothing_to_connect() -> None:
    servers = replace(WITH, strategy=Strategy.IN_GRAPH, code_version=None, entry_point="")
    assert ("connection", "conflict") in found(servers)


def test_tasks_are_told_hosts_cache_and_secrets() -> None:
    assert connection_variables("one,two:10801", "IMAGES") == {
        "IGNITE_DATASET_HOST": "one,two:10801", "IGNITE_DATASET_PORT": "10800", "IGNITE_DATASET_CACHE_NAME": "IMAGES",
    }  # fmt: skip
    assert "IGNITE_DATASET_CACHE_NAME" not in connection_variables("one", "")
    assert connection_secrets({"certificate": "CERT", "ca": "CA", "password": "PW"}) == [
        SecretInput("CERT", "IGNITE_DATASET_CERTFILE", "data-connection/client.pem"),
        SecretInput("CA", "IGNITE_DATASET_CAFILE", "data-connection/ca.pem"),
        SecretInput("PW", "IGNITE_DATASET_PASSWORD", ""),
    ]
