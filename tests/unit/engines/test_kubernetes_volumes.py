"""The volumes of a namespace on a cluster: what pods have of them, which claims there should be, and what those say."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.kubernetes_store import violations
from tests.unit.core.generators import DATA, make_spec
from tests.unit.engines.kubernetes_objects import KEY, OPTIONS, event
from tests.unit.engines.test_kubernetes_manifests import ACCESS, pod_of
from tests.unit.engines.test_kubernetes_placing import refused_pod, seen
from yardmaster.engines.base import ClaimPhase
from yardmaster.engines.kubernetes.namespaces import manifests as namespaces
from yardmaster.engines.kubernetes.namespaces.volumes import Change, changes, claim, state_of
from yardmaster.engines.kubernetes.observe.facts import events_wanted
from yardmaster.engines.kubernetes.render.manifests import Run
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import Misconfigured
from yardmaster.job.spec import DatasetInput, InputSource, LogDir, Role, Strategy
from yardmaster.job.volumes import VolumeKind
from yardmaster.lifecycle.hindrances import shown_hindrance
from yardmaster.lifecycle.phases import Phase
from yardmaster.queueing.ledger import Quota
from yardmaster_runner.settings import read_settings

WITH_VOLUMES = replace(OPTIONS, volume_class="shared")
FROM_VOLUME = (DatasetInput(DATA, source=InputSource.VOLUME),)
SPEC = make_spec(Strategy.SINGLE, inputs=FROM_VOLUME, log_dir=LogDir.VOLUME)
UNBOUND = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
Raw = dict[str, Any]


def live(kind: VolumeKind, size: int = 10, **status: Any) -> Raw:
    made = claim(KEY.namespace_id, kind, size, WITH_VOLUMES)
    return {**made, "status": {"phase": "Pending", **status}}


def of_claim(reason: str, message: str, kind: str = "Warning", at: str = "2026-11-20T12:00:00Z") -> Raw:
    made = event({"metadata": {"name": "data"}}, reason, message, at=at)
    return {**made, "type": kind, "involvedObject": {"kind": "PersistentVolumeClaim", "name": "data"}}


# --- pods ------------------------------------------------------------------------------------------------------------


def test_a_pod_reads_its_inputs_and_writes_its_log_folder_and_sees_no_other():
    pod = pod_of(SPEC, Role.WORKER, WITH_VOLUMES)
    claims = [one for one in pod["volumes"] if "persistentVolumeClaim" in one]
    assert [one["persistentVolumeClaim"]["claimName"] for one in claims] == ["data", "log"]
    mounts = [one for one in pod["containers"][0]["volumeMounts"] if one["name"].startswith("volume-")]
    assert mounts == [
        {
            "name": "volume-data",
            "mountPath": f"/data/datasets/{DATA}",
            "subPath": f"datasets/{DATA}",
            "readOnly": True,
        },
        {"name": "volume-log", "mountPath": "/log", "subPath": f"jobs/{KEY.job_id}/{KEY.attempt}"},
    ]
    assert violations(pod) == []


def test_the_runner_learns_where_the_volumes_are():
    variables = {
        one["name"]: one.get("value", "0") for one in pod_of(SPEC, Role.WORKER, WITH_VOLUMES)["containers"][0]["env"]
    }
    settings = read_settings(variables)
    assert (settings.data_volume, settings.log_dir, settings.log_dir_is_shared) == ("/data", "/log", True)


def test_what_publishes_fetches_to_the_volume_itself():
    spec = make_spec(
        Strategy.BATCH, {Role.WORKER: 1}, program="volume_copy", code_version=None, entry_point="",
        inputs=(DatasetInput(DATA),), options={"files": 1, "bytes": 1},
    )  # fmt: skip
    container = pod_of(spec, Role.WORKER, WITH_VOLUMES)["containers"][0]
    assert {"name": "YARDMASTER_CACHE_DIR", "value": f"/data/datasets/{DATA}/incoming"} in container["env"]
    assert not any(one.get("readOnly") for one in container["volumeMounts"] if one["name"] == "volume-data")


def test_what_removes_logs_of_others_has_a_log_directory_of_its_own():
    spec = make_spec(
        Strategy.BATCH, {Role.WORKER: 1}, program="volume_remove", code_version=None, entry_point="",
        options={"jobs": str(DATA)},
    )  # fmt: skip
    names = [one["name"] for one in pod_of(spec, Role.WORKER, WITH_VOLUMES)["containers"][0]["env"]]
    assert "YARDMASTER_LOG_VOLUME" in names
    assert "YARDMASTER_LOG_DIR" not in names, "its outputs would be the logs of all jobs"


def test_a_job_without_volumes_has_none():
    pod = pod_of(make_spec(), Role.WORKER, WITH_VOLUMES)
    assert not any("persistentVolumeClaim" in one for one in pod["volumes"])


def test_a_cluster_without_a_class_refuses_such_a_job():
    assert [one.code for one in Run.of(SPEC, KEY, ACCESS, OPTIONS).problems] == ["no_volumes", "no_volumes"]
    assert Run.of(SPEC, KEY, ACCESS, WITH_VOLUMES).problems == ()


def test_the_name_of_the_class_is_checked():
    with pytest.raises(Misconfigured, match="volume_class"):
        TaskOptions.from_table({"image": "tasks:1", "volume_class": "Not A Name"})


# --- claims ----------------------------------------------------------------------------------------------------------


def test_a_claim_is_for_several_nodes_and_of_the_class():
    made = claim(uuid.UUID(int=5), VolumeKind.LOG, 1 << 30, WITH_VOLUMES)["spec"]
    assert (made["accessModes"], made["storageClassName"]) == (["ReadWriteMany"], "shared")
    assert made["resources"] == {"requests": {"storage": str(1 << 30)}}


def test_claims_are_made_and_enlarged_and_never_made_smaller():
    data, log = VolumeKind.DATA, VolumeKind.LOG
    assert changes({data: 10}, {}) == [Change(data, 10, is_new=True)]
    assert changes({data: 10, log: 9}, {data: live(data), log: live(log)}) == []
    assert changes({data: 11, log: 10}, {data: live(data), log: live(log)}) == [Change(data, 11)]
    assert changes({}, {data: live(data)}) == [Change(data, None)]


def test_a_claim_that_goes_is_waited_for():
    going = live(VolumeKind.DATA)
    going["metadata"] = {**going["metadata"], "deletionTimestamp": "2026-11-20T12:00:00Z"}
    assert changes({VolumeKind.DATA: 10}, {VolumeKind.DATA: going}) == []
    assert state_of(going, []).phase is ClaimPhase.GOING


def test_a_pending_claim_says_why_in_the_words_of_its_newest_warning():
    said = [of_claim("ProvisioningFailed", 'storageclass.storage.k8s.io "shared" not found')]
    found = state_of(live(VolumeKind.DATA), said)
    assert found.phase is ClaimPhase.PENDING
    assert found.message == 'ProvisioningFailed: storageclass.storage.k8s.io "shared" not found'


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], "The cluster does not say why."),
        ([of_claim("WaitForFirstConsumer", "waiting", "Normal")], "It is created when the first task uses it."),
        ([of_claim("ExternalProvisioning", "waiting for x", "Normal")], "ExternalProvisioning: waiting for x"),
    ],
)
def test_a_claim_without_a_warning_says_what_it_waits_for(events: list[Raw], words: str):
    assert state_of(live(VolumeKind.DATA), events).message == words


def test_a_bound_claim_is_ready_also_while_it_grows():
    there = {"phase": "Bound", "capacity": {"storage": "10"}}
    ready = state_of(live(VolumeKind.DATA, **there), [])
    assert (ready.phase, ready.size, ready.message) == (ClaimPhase.READY, 10, "")
    grows = live(VolumeKind.DATA, 20, **there)
    assert state_of(grows, []).message == "It is being enlarged."
    failed = [of_claim("VolumeResizeFailed", "the driver cannot")]
    assert "cannot be enlarged: VolumeResizeFailed: the driver cannot" in state_of(grows, failed).message
    assert state_of(live(VolumeKind.DATA, phase="Lost"), []).phase is ClaimPhase.LOST
    assert state_of(None, []).phase is ClaimPhase.ABSENT


def test_the_clusters_quota_allows_the_portals_claims_and_no_other():
    options = [replace(one, home_size=size) for size in ("", "1Gi") for one in (OPTIONS, WITH_VOLUMES)]
    hard = [namespaces.bounds(KEY.namespace_id, Quota(), one)[0]["spec"]["hard"] for one in options]
    assert [one["persistentvolumeclaims"] for one in hard] == ["0", "2", "2000", "2002"]


# --- jobs that wait for one ------------------------------------------------------------------------------------------


def test_a_task_that_waits_for_a_claim_says_what_the_claim_waits_for():
    waits = refused_pod(UNBOUND)
    found = seen(waits)
    assert found.tasks[0].reason == "VolumePending"
    assert "involvedObject.kind=PersistentVolumeClaim" in events_wanted(found)
    found = seen(waits, events=[of_claim("ProvisioningFailed", "no space on the server")])
    shown = shown_hindrance(Phase.STARTING, found)
    assert shown.reason == "VolumePending"
    assert UNBOUND in shown.message
    assert "ProvisioningFailed: no space on the server" in shown.message
    assert found.refused is not None  # so that the job goes back to the queue, and holds no quota meanwhile


def test_a_claim_that_is_gone_is_the_same():
    found = seen(refused_pod('0/1 nodes are available: persistentvolumeclaim "data" not found.'))
    assert found.tasks[0].reason == "VolumePending"
