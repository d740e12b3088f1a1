"""`parameter_server.py`, its tasks started by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.examples.by_hand import EXAMPLES, Cluster
from tests.integration.examples.ended_well import check_ended_well
from tests.real.tensorflow_forks import TensorFlowForks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def cluster(digits: Path, tmp_path: Path, forks: Callable[..., TensorFlowForks]) -> Cluster:
    script, replicas = EXAMPLES / "digits" / "parameter_server.py", {"chief": 1, "worker": 2, "ps": 1}
    return Cluster(script, "parameter_server", replicas, tmp_path, digits, ("--steps=500",), forks=forks)


def newest_checkpoint(cluster: Cluster) -> int:
    """The step of the last whole checkpoint, as TensorFlow has noted it."""
    found = re.search(
        r'^model_checkpoint_path: "model\.ckpt-(\d+)"$', (cluster.log_dir / "checkpoint").read_text(), re.M
    )
    assert found
    return int(found[1])


@pytest.mark.long
def test_the_chief_goes_on_without_a_lost_worker_and_takes_it_back(cluster: Cluster) -> None:
    with cluster:
        cluster.start_all()
        cluster["chief", 0].wait_for(r"step 100/")
        cluster["worker", 1].kill()
        cluster.start("worker", 1)
        check_ended_well(cluster)
        assert cluster["worker", 0].process.poll() is None


def test_a_restarted_cluster_goes_on_from_the_checkpoint(cluster: Cluster) -> None:
    cluster.flags = ("--steps=800",)  # it must not end before it is killed
    with cluster:
        cluster.start_all()
        cluster["chief", 0].wait_for(r"step 200/")
        for task in cluster.tasks.values():
            task.kill()
        saved = newest_checkpoint(cluster)
        assert 150 <= saved < 800
        cluster.start_all()
        cluster["chief", 0].wait_for(rf"goes on from \S+model.ckpt-{saved}\b")
        check_ended_well(cluster)
        assert "step 100/" not in cluster["chief", 0].text()
