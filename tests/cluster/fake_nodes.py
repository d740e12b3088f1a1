"""Nodes that only seem to be there (`devcluster nodes`): many of them, of any size. The API server, the controllers and
the scheduler are real; what is bound to such a node counts as running at once, until it is deleted.

For tests and measurements on the development cluster only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cluster.reach import Cluster, wait_for

FAKE = "kwok.x-k8s.io/node"
FAILS = "fake-node/fails"
"""The annotation with which such a node says that it is not ready."""
MAKES = 600.0
"""Seconds. The first of all builds kwok."""
NEEDED = "fake nodes are the development cluster's: make cluster"


def on_fake_nodes(**labels: str) -> dict[str, Any]:
    """Options of an engine whose tasks go to fake nodes with these labels, and nowhere else."""
    return {
        "node_selector": {FAKE: "fake", **labels},
        "tolerations": [{"key": FAKE, "operator": "Exists", "effect": "NoSchedule"}],
    }


@contextmanager
def fake_nodes(cluster: Cluster, *shapes: str) -> Iterator[None]:
    """Each shape in the words of `devcluster nodes`, the number first: `40 name=big cpu=16`. Gone at the end."""
    cluster.devcluster("nodes", "0")
    try:
        for shape in shapes:
            cluster.devcluster("nodes", *shape.split(), seconds=MAKES)
        yield
    finally:
        cluster.devcluster("nodes", "0")


def set_failing(cluster: Cluster, node: str, fails: bool) -> None:
    """Until it says so."""
    cluster.kubectl("annotate", "node", node, f"{FAILS}=yes" if fails else f"{FAILS}-")
    wanted = "False" if fails else "True"
    wait_for(f"{node} to be ready: {wanted}", lambda: _readiness(cluster, node) == wanted)


def _readiness(cluster: Cluster, node: str) -> str:
    conditions = json.loads(cluster.kubectl("get", "node", node, "-o", "json"))["status"].get("conditions", ())
    return next((one["status"] for one in conditions if one["type"] == "Ready"), "")
