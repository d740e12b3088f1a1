"""The strategy `service`: one task that serves a port, runs no script and ends when it is stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.generators import DATA, everything, make_spec
from yardmaster.errors import SpecRejected
from yardmaster.job.spec import Role, RoleSpec, Strategy
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.job.spec_stored import stored_spec
from yardmaster.job.strategy import is_cluster, is_service, only_serves, server_roles
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.lifecycle.restarts import Restart, after_exit
from yardmaster.lifecycle.success import job_verdict

SPEC = make_spec(Strategy.SERVICE)


def test_it_has_one_worker_with_a_port_and_runs_no_script():
    assert server_roles(SPEC) == (Role.WORKER,)
    assert only_serves(SPEC.strategy)
    assert is_service(SPEC.strategy)
    assert not is_cluster(SPEC.strategy)


def test_it_never_succeeds_and_fails_when_its_task_ends():
    assert job_verdict(SPEC, everything(SPEC, TaskPhase.RUNNING)) is None
    verdict = job_verdict(SPEC, everything(SPEC, TaskPhase.SUCCEEDED))
    assert verdict is not None
    assert verdict.reason != "Succeeded"


def test_a_model_that_cannot_be_loaded_is_not_tried_again():
    assert after_exit(SPEC, Role.WORKER, 0, 3, "ModelNotLoaded", 0) is Restart.NONE_FAILED
    assert after_exit(SPEC, Role.WORKER, 0, 137, "Killed", 0) is Restart.TASK


def test_it_ends_without_time_for_uploads():
    assert SPEC.time_to_end == SPEC.grace_period


def test_an_input_of_a_model_survives_both_forms():
    written = spec_to_json(SPEC)
    plain = {"mode": "folder", "share": "all", "stands_for": "", "source": "store"}
    assert written["inputs"] == [{"model_version": str(DATA), "name": "", **plain}]
    assert spec_from_json(written) == SPEC
    assert stored_spec(written) == SPEC


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"model_version": "5"}, "inputs.0.model_version"),
        ({"model_version": str(DATA), "dataset_version": str(DATA)}, "inputs.0"),
        ({"name": "a"}, "inputs.0.dataset_version"),
        ({"model_version": str(DATA), "mode": "stream"}, "inputs.0.mode"),
    ],
)
def test_an_input_that_names_no_version_is_refused_where_it_stands(entry, field):
    with pytest.raises(SpecRejected) as error:
        spec_from_json({**spec_to_json(SPEC), "inputs": [entry]})
    assert field in {one.field for one in error.value.problems}


@pytest.mark.parametrize("changes", [{"roles": {Role.WORKER: RoleSpec(2)}}, {"roles": {Role.PS: RoleSpec(1)}}])
def test_another_shape_is_refused(changes):
    with pytest.raises(SpecRejected):
        spec_from_json(spec_to_json(replace(SPEC, **changes)))
