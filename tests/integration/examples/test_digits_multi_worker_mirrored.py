"""`multi_worker_mirrored.py`, its tasks started by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.examples.by_hand import EXAMPLES, Cluster
from tests.integration.examples.ended_well import check_ended_well
from tests.real.tensorflow_forks import TensorFlowForks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.mark.long
def test_restarted_workers_go_on_together_from_their_last_epoch(
    digits: Path, tmp_path: Path, forks: Callable[..., TensorFlowForks]
) -> None:
    script, more = EXAMPLES / "digits" / "multi_worker_mirrored.py", ("--epochs=12",)  # not over before the kill
    with Cluster(script, "multi_worker_mirrored", {"worker": 2}, tmp_path, digits, more, forks=forks) as cluster:
        cluster.start_all()
        cluster["worker", 0].wait_for(r"Epoch 3/12")
        for index in (1, 0):
            cluster["worker", index].kill()
        cluster.start_all()
        check_ended_well(cluster)
        assert cluster["worker", 1].wait() == 0
        assert "Epoch 12/12" in cluster["worker", 1].text()
        assert all("Epoch 1/12" not in cluster["worker", index].text() for index in (0, 1))
    assert not (tmp_path / "model-worker-1").exists()
