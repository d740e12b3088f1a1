"""What every example leaves behind when it has ended well."""

from __future__ import annotations

import re

from tests.integration.examples.by_hand import Cluster
from yardmaster_runner.checkpoints import find_complete
from yardmaster_runner.events import EventFiles, Scalar


def check_ended_well(cluster: Cluster) -> None:
    """The leader ended with 0 and a good accuracy; the model, a checkpoint and a falling loss are there."""
    leader = cluster[cluster.leader]
    assert leader.wait() == 0, leader.text()
    found = re.search(r"^test accuracy (\d\.\d{4})$", leader.text(), re.MULTILINE)
    assert found, leader.text()
    assert float(found[1]) >= 0.95
    assert "Traceback" not in leader.text()
    assert (cluster.model_dir / "saved_model.pb").is_file()
    assert (cluster.model_dir / "variables" / "variables.index").is_file()
    assert find_complete(str(cluster.log_dir), now=float("inf"))
    losses = [point.value for point in scalars(cluster) if point.tag.endswith("loss") and point.value is not None]
    assert losses[-1] < losses[0] / 2


def scalars(cluster: Cluster) -> list[Scalar]:
    """Everything in the event files, in the order of the steps."""
    return sorted(EventFiles(str(cluster.log_dir)).look().scalars, key=lambda point: point.step)
