"""What was stored is decoded under any rules: only what cannot be a specification at all is an error."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.generators import CODE, specs
from yardmaster.errors import SpecRejected, SpecUnreadable
from yardmaster.job.spec import USUAL_PATHS, Role, Strategy, SuccessRule, TrainingSpec
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.job.spec_limits import SpecLimits
from yardmaster.job.spec_stored import remains_of, stored_spec

LEAST: dict[str, Any] = {"strategy": "single", "roles": {"worker": {}}}
STRICT = SpecLimits(size=1, tasks=0, arguments=0, variables=0, inputs=0, cpu=0.001, retries=0, grace=timedelta(0))
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(specs())
def test_every_specification_that_was_launched_is_decoded_as_it_was(spec: TrainingSpec):
    assert stored_spec(spec_to_json(spec)) == spec


@given(specs())
def test_a_tightened_rule_refuses_what_is_sent_and_not_what_is_stored(spec: TrainingSpec):
    stored = spec_to_json(spec)
    with pytest.raises(SpecRejected):
        spec_from_json(stored, STRICT)
    assert stored_spec(stored) == spec


def test_keys_of_an_older_release_are_passed_over_and_those_of_a_newer_one_have_their_defaults():
    found = stored_spec({**LEAST, "dropped": [1], "roles": {"worker": {"colour": "red"}}, "paths": {"old_flag": "--x"}})
    assert found.roles[Role.WORKER].replicas == 1
    assert (found.retries, found.grace_period, found.paths) == (3, timedelta(seconds=30), USUAL_PATHS)
    assert (found.success_rule, found.max_runtime, found.code_version) == (SuccessRule.WORKERS, None, None)


def test_amounts_that_no_rule_allows_are_decoded():
    wide = {"replicas": 40_000, "cpu": 99_999, "memory": 1, "gpus": 10**6, "extended": {"NO NAME!": 7}}
    stored = {**LEAST, "name": "", "roles": {"worker": wide}, "retries": -1, "priority": 10**6,
              "environment": {"TF_CONFIG": "\0"}, "success": {"percent": 900}}  # fmt: skip
    found = stored_spec(stored)
    assert (found.replicas(Role.WORKER), found.retries, found.priority) == (40_000, -1, 10**6)
    with pytest.raises(SpecRejected):
        spec_from_json({**stored, "code": str(CODE), "entry_point": "train.py"})


@pytest.mark.parametrize(
    ("stored", "field"),
    [
        (None, "is no object"),
        ([], "is no object"),
        ({}, "strategy is missing"),
        ({**LEAST, "version": 2}, "version is of another release"),
        ({**LEAST, "strategy": "ring"}, "strategy is not known"),
        ({**LEAST, "roles": []}, "roles is no object"),
        ({**LEAST, "roles": {"boss": {}}}, "not known"),
        ({**LEAST, "roles": {"worker": {"replicas": "many"}}}, "roles.replicas is no whole number"),
        ({**LEAST, "roles": {"worker": {"replicas": 10**12}}}, "more tasks than can be counted"),
        ({**LEAST, "roles": {"worker": {"cpu": -1}}}, "roles.cpu is less than nothing"),
        ({**LEAST, "roles": {"worker": {"memory": float("nan")}}}, "roles.memory is no amount"),
        ({**LEAST, "code": "the newest"}, "code is no id"),
        ({**LEAST, "inputs": [{}]}, "inputs.dataset_version is missing"),
        ({**LEAST, "arguments": [1]}, "arguments is no text"),
        ({**LEAST, "grace_period": 10**30}, "grace_period is no possible duration"),
        ({**LEAST, "grace_period": 10**400}, "grace_period is no possible duration"),
        ({**LEAST, "retries": True}, "retries is no whole number"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_specification_is_an_error_that_names_the_field(stored: object, field: str):
    with pytest.raises(SpecUnreadable, match=field):
        stored_spec(stored)


@given(_json, st.dictionaries(st.sampled_from(["strategy", "roles", "grace_period", "name", "inputs", "paths"]), _json))
def test_nothing_that_is_stored_raises_anything_else(anything: object, keyed: dict[str, object]):
    for data in (anything, keyed, {**LEAST, **keyed}):
        try:
            stored_spec(data)
        except SpecUnreadable:
            left = remains_of(data, Strategy.SINGLE, {Role.WORKER: 2})
            assert left.tasks() == [(Role.WORKER, 0), (Role.WORKER, 1)]


def test_of_what_is_unreadable_that_is_kept_with_which_the_job_can_be_ended():
    left = remains_of({"name": "digits", "grace_period": 90, "roles": 7}, Strategy.BETWEEN_GRAPH, {Role.PS: 1})
    assert (left.name, left.grace_period, left.replicas(Role.PS)) == ("digits", timedelta(seconds=90), 1)
