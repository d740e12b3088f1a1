"""The secrets that a specification names: what is refused, with which words."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from yardmaster.errors import SpecRejected
from yardmaster.job.spec import SecretInput
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.job.spec_stored import stored_spec


def spec_json(*secrets: Any, **changes: Any) -> dict[str, Any]:
    roles = {"worker": {"replicas": 1}}
    base = {"name": "job", "strategy": "single", "roles": roles, "code": str(uuid.UUID(int=1)), "entry_point": "a.py"}
    return {**base, "secrets": list(secrets), **changes}


def problems(*secrets: Any, **changes: Any) -> dict[str, str]:
    with pytest.raises(SpecRejected) as found:
        spec_from_json(spec_json(*secrets, **changes))
    return {one.field: one.code for one in found.value.problems}


def test_a_secret_is_a_variable_a_file_or_a_variable_with_the_files_path():
    secrets = [{"name": "KEY", "env": "AWS_KEY"}, {"name": "NETRC", "file": ".netrc"}]
    both = {"name": "GCP", "env": "GOOGLE_APPLICATION_CREDENTIALS", "file": "gcp/key.json"}
    spec = spec_from_json(spec_json(*secrets, both))
    assert spec.secrets[0] == SecretInput("KEY", env="AWS_KEY")
    assert spec.secrets[2].file == "gcp/key.json"
    assert spec_to_json(spec)["secrets"] == [*secrets, both]
    assert stored_spec(spec_to_json(spec)) == spec


def test_a_specification_from_before_has_none():
    old = spec_to_json(spec_from_json(spec_json()))
    del old["secrets"]
    assert stored_spec(old).secrets == ()


@pytest.mark.parametrize(
    ("one", "field", "code"),
    [
        ({"env": "A"}, "secrets.0.name", "missing"),
        ({"name": "two words", "env": "A"}, "secrets.0.name", "bad_value"),
        ({"name": "KEY"}, "secrets.0.env", "missing"),
        ({"name": "KEY", "env": "1A"}, "secrets.0.env", "bad_value"),
        ({"name": "KEY", "env": "YARDMASTER_TOKEN"}, "secrets.0.env", "reserved"),
        ({"name": "KEY", "env": "TF_CONFIG"}, "secrets.0.env", "reserved"),
        ({"name": "KEY", "env": "LD_PRELOAD"}, "secrets.0.env", "reserved"),
        ({"name": "KEY", "env": "PYTHONPATH"}, "secrets.0.env", "reserved"),
        ({"name": "KEY", "env": "PATH"}, "secrets.0.env", "reserved"),
        ({"name": "KEY", "env": "HOME"}, "secrets.0.env", "reserved"),
        ({"name": "KEY", "env": "DATA_DIR"}, "secrets.0.env", "duplicate"),
        ({"name": "KEY", "file": "../.netrc"}, "secrets.0.file", "bad_path"),
        ({"name": "KEY", "file": "/etc/passwd"}, "secrets.0.file", "bad_path"),
        ({"name": "KEY", "file": "a\\..\\b"}, "secrets.0.file", "bad_path"),
        ({"name": "KEY", "file": "a", "env": "SECRETS_DIR"}, "secrets.0.env", "duplicate"),
        ({"name": "KEY", "env": "A", "value": "x"}, "secrets.0.'value'", "unknown_key"),
        ("KEY", "secrets.0", "wrong_type"),
    ],
)
def test_what_cannot_be_meant_is_refused(one, field, code):
    found = problems(one)
    assert code in found.values()
    assert any(name == field or name.startswith("secrets.0") for name in found)


def test_a_variable_cannot_be_set_twice():
    assert problems({"name": "A", "env": "X"}, {"name": "B", "env": "X"}) == {"secrets.1.env": "duplicate"}
    assert problems({"name": "A", "env": "X"}, environment={"X": "1"}) == {"secrets.0.env": "duplicate"}


@pytest.mark.parametrize("paths", [("a", "A"), ("a", "a/b"), ("a/b", "a")])
def test_two_files_cannot_be_in_one_place(paths):
    secrets = [{"name": "KEY", "file": path} for path in paths]
    assert problems(*secrets) == {"secrets.1.file": "duplicate"}


def test_servers_without_a_script_have_no_use_for_secrets():
    roles = {"worker": {"replicas": 1}, "ps": {"replicas": 1}}
    in_graph = spec_json({"name": "A", "env": "X"}, strategy="in_graph", roles=roles)
    del in_graph["code"], in_graph["entry_point"]
    with pytest.raises(SpecRejected) as found:
        spec_from_json(in_graph)
    assert {one.field: one.code for one in found.value.problems} == {"secrets": "conflict"}


def test_a_value_that_was_written_by_mistake_is_not_repeated():
    with pytest.raises(SpecRejected) as found:
        spec_from_json(spec_json({"name": "A", "env": "X", "value": "hunter2-hunter2"}))
    assert "hunter2" not in str(found.value.problems)
