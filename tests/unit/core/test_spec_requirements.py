"""The packages that a specification asks for: what is taken, what is refused, with which words."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from yardmaster.errors import SpecRejected
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.job.spec_stored import stored_spec


def spec_json(**changes: Any) -> dict[str, Any]:
    roles = {"worker": {"replicas": 1}}
    base = {"name": "job", "strategy": "single", "roles": roles, "code": str(uuid.UUID(int=1)), "entry_point": "a.py"}
    return {**base, **changes}


def problems(**changes: Any) -> dict[str, str]:
    with pytest.raises(SpecRejected) as found:
        spec_from_json(spec_json(**changes))
    return {one.field: one.code for one in found.value.problems}


def test_without_the_field_the_code_decides_and_an_empty_list_means_none():
    assert spec_from_json(spec_json()).requirements is None
    assert spec_from_json(spec_json(requirements=None)).requirements is None
    assert spec_from_json(spec_json(requirements=[])).requirements == ()


def test_what_was_stored_before_there_were_packages_installs_none():
    old = spec_to_json(spec_from_json(spec_json()))
    del old["requirements"]
    assert stored_spec(old).requirements == ()


def test_names_versions_extras_markers_hashes_and_a_few_options_are_taken():
    lines = [
        "pandas", "scikit-learn>=1.5,<2", "ray[data]==2.9; python_version < '3.12'", "a==1 --hash=sha256:" + "0" * 64,
        "--pre", "--no-binary a",
    ]  # fmt: skip
    spec = spec_from_json(spec_json(requirements=lines))
    assert spec.requirements == tuple(lines)
    assert stored_spec(spec_to_json(spec)) == spec


@pytest.mark.parametrize(
    "line",
    [
        "", " ", "-r more.txt", "--index-url https://host/simple", "-e .", "git+https://host/x.git", "../x", "./x.whl",
        "x @ https://host/x.whl", "two\nlines", "x" * 1001, "=1", "\u2028",
    ],
)  # fmt: skip
def test_what_pip_would_read_from_elsewhere_is_refused_by_line(line: str):
    assert problems(requirements=["pandas", line]) == {"requirements.1": "bad_value"}


def test_too_many_lines_are_refused():
    assert problems(requirements=["a"] * 501)["requirements"] in ("too_long", "too_many", "out_of_range")


def test_only_scripts_have_packages():
    roles = {"ps": {"replicas": 1}, "worker": {"replicas": 1}}
    found = problems(strategy="in_graph", roles=roles, code=None, entry_point="", requirements=["pandas"])
    assert found["requirements"] == "conflict"
