"""`between_graph.py`, its tasks started by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.examples.by_hand import EXAMPLES, Cluster
from tests.integration.examples.ended_well import check_ended_well, scalars
from tests.real.tensorflow_forks import TensorFlowForks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

Start = Callable[..., Cluster]


@pytest.fixture
def cluster_of(digits: Path, tmp_path: Path, forks: Callable[..., TensorFlowForks]) -> Start:
    def make(*flags: str, classic: bool = True, **replicas: int) -> Cluster:
        script = EXAMPLES / "digits" / "between_graph.py"
        return Cluster(script, "between_graph", replicas, tmp_path, digits, flags, classic, forks)

    return make


def step_of(cluster: Cluster, worker: int) -> int:
    """The first step that a worker printed since it was last started."""
    return int(cluster["worker", worker].wait_for(r"step (\d+)/")[1])


@pytest.mark.long
def test_asynchronous_workers_learn_the_digits(cluster_of: Start) -> None:
    with cluster_of("--steps=600", ps=1, worker=2) as cluster:
        cluster.start_all()
        check_ended_well(cluster)
        assert cluster["worker", 1].wait() == 0
        assert cluster["ps", 0].process.poll() is None
    assert {(point.run, point.tag) for point in scalars(cluster)} >= {
        (".", "loss"),
        (".", "accuracy"),
        ("test", "accuracy"),
    }


@pytest.mark.long
def test_synchronous_workers_all_end_and_a_chief_is_worker_0(cluster_of: Start) -> None:
    with cluster_of("--sync", "--steps=200", classic=False, chief=1, ps=1, worker=1) as cluster:
        cluster.start_all()
        check_ended_well(cluster)
        assert cluster["worker", 0].wait() == 0


@pytest.mark.long
def test_a_lost_worker_and_a_lost_chief_are_restarted_alone(cluster_of: Start) -> None:
    with cluster_of("--steps=900", "--checkpoint_every=50", "--step_sleep=0.02", ps=1, worker=2) as cluster:
        cluster.start_all()
        cluster["worker", 1].wait_for(r"step 1\d\d/")
        cluster["worker", 1].kill()
        cluster.start("worker", 1)
        assert step_of(cluster, worker=1) >= 100
        cluster["worker", 0].kill()
        cluster.start("worker", 0)
        assert step_of(cluster, worker=0) >= 100
        check_ended_well(cluster)
        assert cluster["worker", 1].wait() == 0


@pytest.mark.long
def test_a_lost_parameter_server_comes_back_from_the_checkpoint(cluster_of: Start) -> None:
    with cluster_of("--steps=400", "--checkpoint_every=50", "--step_sleep=0.02", ps=1, worker=2) as cluster:
        cluster.start_all()
        cluster["worker", 0].wait_for(r"step 1\d\d/")
        cluster["ps", 0].kill()
        cluster.start("ps", 0)
        check_ended_well(cluster)
        assert cluster["worker", 1].wait() == 0
    assert min(point.step for point in scalars(cluster)[-5:]) > 350


@pytest.mark.long
def test_a_lost_synchronous_chief_goes_on_from_the_checkpoint(cluster_of: Start) -> None:
    with cluster_of("--sync", "--steps=200", "--checkpoint_every=30", "--step_sleep=0.02", ps=1, worker=2) as cluster:
        cluster.start_all()
        cluster["worker", 0].wait_for(r"step [4-9]\d/")
        cluster["worker", 0].kill()
        cluster.start("worker", 0)
        assert step_of(cluster, worker=0) >= 30
        check_ended_well(cluster)
        assert cluster["worker", 1].wait() == 0


@pytest.mark.long
def test_a_chief_restarted_after_the_training_only_tests_and_exports(cluster_of: Start) -> None:
    with cluster_of("--steps=300", ps=1, worker=1) as cluster:
        cluster.start_all()
        cluster["worker", 0].wait_for(r"test accuracy")
        assert cluster["worker", 0].wait() == 0
        (cluster.model_dir / "saved_model.pb").unlink()  # as if it was killed while it wrote the model
        cluster["ps", 0].kill()
        cluster.start("worker", 0)
        check_ended_well(cluster)
        assert "step" not in cluster["worker", 0].text()


def test_without_a_cluster_it_says_what_to_give(cluster_of: Start) -> None:
    with cluster_of(worker=1, classic=False) as cluster:
        task = cluster.start("worker")
        assert task.wait() == 1
        assert "no cluster: give --ps_hosts" in task.text()
