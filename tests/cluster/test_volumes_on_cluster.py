"""Volumes on a real cluster: claims that are bound or say why not, a dataset that is published and read in place, and
log directories that no other job sees."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.account import Account, shaped
from tests.cluster.conftest import portal_on
from tests.cluster.engine_on_cluster import ClusterHarness
from tests.cluster.jobs import TRAINS, cleaned_up, ended, launch, text_of
from tests.cluster.reach import Cluster, wait_for
from tests.contract.engine_harness import ACCESS, SMALL, spec_of, wait_until
from yardmaster.engines.base import ClaimPhase
from yardmaster.ids import JobKey
from yardmaster.job.spec import LogDir, Role, RoleSpec, Strategy
from yardmaster.job.volumes import VolumeKind
from yardmaster.queueing.ledger import Quota
from yardmaster_client import PortalError, Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400)]

CLASS = os.environ.get("YARDMASTER_TEST_VOLUME_CLASS", "shared")
"""A StorageClass with ReadWriteMany; that of the development cluster."""
READS = """
import os
data = os.environ["DATA_DIR"]
print("data", sorted(os.listdir(data)), open(os.path.join(data, "a.txt")).read(), flush=True)
print("published", len(os.listdir("/data/datasets")))
for path in (os.path.join(data, "new.txt"), os.path.join(data, "a.txt")):
    try:
        open(path, "w")
        print("WRITTEN", path)
    except OSError as error:
        print("refused", error.strerror)
log = os.environ["LOG_DIR"]
print("log", log, sorted(os.listdir(log)))
with open(os.path.join(log, "notes.txt"), "w") as file:
    file.write("kept")
os.symlink("/log/../../..", os.path.join(log, "out"))
print("above", sorted(os.listdir(os.path.join(log, ".."))).count("jobs"))
"""


@pytest.fixture(scope="module")
def portal_with_volumes(cluster: Cluster, account: Account, own_address: str) -> Iterator[Any]:
    if CLASS not in cluster.names("storageclasses"):
        pytest.skip(f"the cluster has no StorageClass {CLASS}: set YARDMASTER_TEST_VOLUME_CLASS")
    quota = {"YARDMASTER_DEFAULT_QUOTA_STORAGE": "2Gi"}
    with portal_on(cluster, account, own_address, quota, volume_class=CLASS) as running:
        yield running


@pytest.fixture(scope="module")
def grace(portal_with_volumes: Any) -> Iterator[Yardmaster]:
    with Yardmaster(portal_with_volumes.url, portal_with_volumes.token_of("grace")) as client:
        yield client


@pytest.fixture(scope="module")
def volumes(grace: Yardmaster) -> dict[str, dict[str, Any]]:
    """Both, ready. A class that waits for the first task is ready enough."""
    home = next(one.id for one in grace.namespaces() if one.personal and one.role == "manager")
    for kind in ("data", "log"):
        grace.volume_create(home, kind=kind, size="128Mi")

    def there() -> dict[str, dict[str, Any]] | None:
        found = {one["kind"]: one for one in grace.volumes(home)}
        is_ready = all(one["state"] == "ready" or "first task" in one["message"] for one in found.values())
        return found if len(found) == 2 and is_ready else None

    return wait_for("both volumes", there, 120)


def test_a_published_dataset_is_read_in_place_and_each_job_has_a_log_folder_of_its_own(
    grace: Yardmaster, volumes: dict[str, dict[str, Any]], tmp_path: Path
):
    (tmp_path / "a.txt").write_text("one")
    latest = grace.datasets.put("letters", [tmp_path / "a.txt"]).latest
    other = grace.datasets.put("others", [tmp_path / "a.txt"]).latest
    assert latest is not None
    assert other is not None
    for version in (latest, other):
        job = grace.jobs.wait(grace.version_publish(version.id)["job"], timeout=TRAINS)
        assert job.phase == "SUCCEEDED", (job.reason, job.message, text_of(grace, job))
    assert [one["state"] for one in grace.version_on_volumes(latest.id)] == ["ready"]
    inputs = [{"dataset_version": latest.id, "source": "volume"}]
    for _ in range(2):
        job = ended(grace, launch(grace, READS, inputs=inputs, log_dir="volume"))
        lines = text_of(grace, job).splitlines()
        assert "data ['a.txt'] one" in lines
        assert "published 1" in lines, "no other version is to be seen"
        assert lines.count("refused Read-only file system") == 2
        assert "log /log []" in lines, "of another job nothing is to be seen"
        assert "above 0" in lines
    outputs = {one["path"] for one in grace.transport.get(f"jobs/{job.id}/outputs/")["results"]}
    assert "notes.txt" in outputs
    cleaned_up(grace, job)  # until then it may still read the volume
    gone = grace.jobs.wait(grace.version_unpublish(latest.id)["job"], timeout=TRAINS)
    assert gone.phase == "SUCCEEDED", text_of(grace, gone)
    with pytest.raises(PortalError, match="not on the data volume"):
        launch(grace, READS, inputs=inputs)


def test_tasks_of_a_job_share_its_log_folder(grace: Yardmaster, volumes: dict[str, dict[str, Any]]):
    script = (
        "import os, time\n"
        "log = os.environ['LOG_DIR']\n"
        "open(os.path.join(log, os.environ['YARDMASTER_INDEX']), 'w').close()\n"
        "while len(os.listdir(log)) < 2:\n    time.sleep(0.1)\n"
        "print('both', sorted(os.listdir(log)), flush=True)\n"
    )
    roles = {"worker": {"replicas": 2, "cpu": 0.2, "memory": "256Mi"}}
    job = ended(grace, launch(grace, script, strategy="batch", roles=roles, log_dir="volume"))
    assert "both ['0', '1']" in text_of(grace, job, index=1)


def test_a_volume_without_a_size_takes_the_rest_of_the_quota_and_datasets_are_still_published_to_it(
    portal_with_volumes: Any, tmp_path: Path
):
    (tmp_path / "a.txt").write_text("one")
    with Yardmaster(portal_with_volumes.url, portal_with_volumes.token_of("heidi")) as heidi:
        latest = heidi.datasets.put("letters", [tmp_path / "a.txt"]).latest
        assert latest is not None
        home = next(one.id for one in heidi.namespaces() if one.personal and one.role == "manager")
        heidi.volume_create(home, kind="data")
        with pytest.raises(PortalError, match="quota is left for a volume"):
            heidi.volume_create(home, kind="log")
        job = heidi.jobs.wait(heidi.version_publish(latest.id)["job"], timeout=TRAINS)
        assert job.phase == "SUCCEEDED", (job.reason, job.message)
        assert [one["state"] for one in heidi.version_on_volumes(latest.id)] == ["ready"]


def test_a_claim_that_no_class_serves_says_so_and_so_does_the_job_that_waits_for_it(
    on_cluster: ClusterHarness, key: JobKey
):
    engine = on_cluster.new_engine(volume_class="no-such-class")
    shaped(engine, key.namespace_id, Quota(), ACCESS.portal_url)

    def said() -> str:
        state = engine.keep_volumes(key.namespace_id, {VolumeKind.LOG: 64 << 20})[VolumeKind.LOG]
        assert state.phase is ClaimPhase.PENDING
        return state.message if "no-such-class" in state.message else ""

    assert "not found" in wait_for("the claim's events", said, 60)
    alone = {Role.WORKER: RoleSpec(1, SMALL)}
    engine.submit(spec_of(Strategy.SINGLE, roles=alone, log_dir=LogDir.VOLUME), key, ACCESS)
    seen = wait_until(engine, key, lambda found: any("no-such-class" in one.message for one in found.tasks), 90)
    assert [one.reason for one in seen.tasks] == ["VolumePending"]
    engine.clean_up(key)
    assert engine.keep_volumes(key.namespace_id, {})[VolumeKind.LOG].phase in (ClaimPhase.ABSENT, ClaimPhase.GOING)
