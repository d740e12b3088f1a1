"""What a specification may ask of the volumes of its namespace, and which folders of them its tasks see."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.unit.core.generators import DATA, make_spec
from yardmaster.errors import Problem, SpecRejected
from yardmaster.ids import JobKey
from yardmaster.job.spec import DatasetInput, InputSource, LogDir, Strategy
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.job.spec_stored import stored_spec
from yardmaster.job.volumes import Mount, VolumeKind, kinds_used, mounts_of, where_there_are_none

KEY = JobKey(uuid.UUID(int=1), uuid.UUID(int=2), 3)
OTHER = uuid.UUID(int=77)


def written(**changes: Any) -> dict[str, Any]:
    inputs = [{"dataset_version": str(DATA), "source": "volume"}]
    base = {"name": "job", "strategy": "single", "roles": {"worker": {}}, "code": str(OTHER), "entry_point": "a.py"}
    return {**base, "inputs": inputs, "log_dir": "volume", **changes}


def copying(**changes: Any) -> dict[str, Any]:
    return {
        "name": "copy", "strategy": "batch", "roles": {"worker": {"replicas": 1}}, "program": "volume_copy",
        "options": {"files": 2, "bytes": 10}, "inputs": [{"dataset_version": str(DATA)}], **changes,
    }  # fmt: skip


def problems(data: dict[str, Any]) -> list[Problem]:
    with pytest.raises(SpecRejected) as refused:
        spec_from_json(data)
    return list(refused.value.problems)


def test_source_and_log_dir_survive_both_forms_and_default_to_store_and_disk():
    spec = spec_from_json(written())
    assert (spec.inputs[0].source, spec.log_dir) == (InputSource.VOLUME, LogDir.VOLUME)
    assert spec_from_json(spec_to_json(spec)) == spec == stored_spec(spec_to_json(spec))
    old = spec_to_json(spec)
    del old["log_dir"], old["inputs"][0]["source"]
    assert (stored_spec(old).inputs[0].source, stored_spec(old).log_dir) == (InputSource.STORE, LogDir.DISK)


def test_tasks_see_the_folders_that_their_job_needs_and_may_write_to_their_log_folder_alone():
    inputs = (DatasetInput(DATA, "a", source=InputSource.VOLUME), DatasetInput(OTHER, "b"))
    spec = make_spec(inputs=inputs, log_dir=LogDir.VOLUME)
    assert mounts_of(spec, KEY) == (
        Mount(VolumeKind.DATA, f"datasets/{DATA}", f"/data/datasets/{DATA}", True),
        Mount(VolumeKind.LOG, f"jobs/{KEY.job_id}/3", "/log", False),
    )
    assert kinds_used(spec) == {VolumeKind.DATA, VolumeKind.LOG}
    assert kinds_used(make_spec()) == frozenset()


def test_the_same_version_twice_is_one_mount():
    twice = tuple(DatasetInput(DATA, name, source=InputSource.VOLUME) for name in ("a", "b"))
    assert len(mounts_of(make_spec(inputs=twice), KEY)) == 1


def test_the_portals_programs_write_where_others_read():
    (copy,) = mounts_of(spec_from_json(copying()), KEY)
    assert (copy.folder, copy.read_only) == (f"datasets/{DATA}", False)
    gone = copying(program="volume_remove", options={"version": str(DATA)}, inputs=[])
    (remove,) = mounts_of(spec_from_json(gone), KEY)
    assert (remove.folder, remove.path, remove.read_only) == ("datasets", "/data/datasets", False)
    logs = copying(program="volume_remove", options={"jobs": f"{DATA},{OTHER}"}, inputs=[])
    (remove,) = mounts_of(spec_from_json(logs), KEY)
    assert (remove.kind, remove.folder, remove.path) == (VolumeKind.LOG, "jobs", "/log/jobs")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"inputs": [{"model_version": str(DATA), "source": "volume"}]}, "inputs.0.source"),
        ({"inputs": [{"dataset_version": str(DATA), "source": "volume", "mode": "stream"}]}, "inputs.0.mode"),
        ({"inputs": [{"dataset_version": str(DATA), "source": "../.."}]}, "inputs.0.source"),
        ({"log_dir": "/data"}, "log_dir"),
        ({"strategy": "in_graph", "roles": {"worker": {}}, "code": None, "entry_point": ""}, "log_dir"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(changes: dict[str, Any], field: str):
    assert field in [one.field for one in problems(written(**changes))]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"environment": {"PYTHONSTARTUP": "/x"}}, "environment"),
        ({"code": str(OTHER)}, "code"),
        ({"secrets": [{"name": "KEY", "env": "KEY"}]}, "secrets"),
        ({"publishes": {"dataset": "d"}}, "publishes"),
        ({"paths": {"data_env": "PYTHONHOME"}}, "paths"),
        ({"roles": {"worker": {"replicas": 2}}}, "roles.worker.replicas"),
        ({"inputs": [{"dataset_version": str(DATA), "source": "volume"}]}, "inputs.0.source"),
        ({"inputs": [{"model_version": str(DATA)}]}, "inputs"),
        ({"log_dir": "volume"}, "log_dir"),
        ({"options": {}}, "options.files"),
        ({"program": "volume_remove", "options": {"version": "../.."}, "inputs": []}, "options.version"),
        ({"program": "volume_remove", "options": {"version": str(DATA)}}, "inputs"),
        ({"program": "volume_remove", "options": {"jobs": f"{DATA},.."}, "inputs": []}, "options.jobs"),
        ({"program": "volume_remove", "options": {}, "inputs": []}, "options.version"),
    ],
)
def test_nothing_of_a_user_runs_beside_a_program_that_writes_to_the_volume(changes: dict[str, Any], field: str):
    assert field in [one.field for one in problems(copying(**changes))]


def test_an_engine_without_volumes_says_so_of_each_field():
    spec = make_spec(Strategy.SINGLE, inputs=(DatasetInput(DATA, source=InputSource.VOLUME),), log_dir=LogDir.VOLUME)
    assert [(one.field, one.code) for one in where_there_are_none(spec)] == [
        ("inputs.0.source", "no_volumes"), ("log_dir", "no_volumes"),
    ]  # fmt: skip
    assert where_there_are_none(make_spec()) == []
