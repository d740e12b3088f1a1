"""`single.py`, started by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.examples.by_hand import EXAMPLES, Cluster
from tests.integration.examples.ended_well import check_ended_well

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.mark.long
def test_a_lost_task_goes_on_from_its_last_epoch(digits: Path, tmp_path: Path) -> None:
    script, more = EXAMPLES / "digits" / "single.py", ("--epochs=20",)  # it must not end before it is killed
    with Cluster(script, "single", {"worker": 1}, tmp_path, digits, more) as cluster:
        cluster.start("worker").wait_for(r"Epoch 4/20")
        cluster["worker", 0].kill()
        cluster.start("worker")
        check_ended_well(cluster)
        assert "Epoch 20/20" in cluster["worker", 0].text()
        assert "Epoch 2/20" not in cluster["worker", 0].text()


def test_missing_shards_are_named(tmp_path: Path) -> None:
    with Cluster(EXAMPLES / "digits" / "single.py", "single", {"worker": 1}, tmp_path, tmp_path / "none") as cluster:
        task = cluster.start("worker")
        assert task.wait() == 1
        assert "no train-*.tfrecord file in --data_dir" in task.text()
