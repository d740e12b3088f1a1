"""Tasks of one run are put near each other where they fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.generators import make_spec
from tests.unit.engines.kubernetes_objects import KEY, OPTIONS
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.pods import pod_template
from yardmaster.errors import Misconfigured
from yardmaster.job.spec import Role


def affinity(options):
    spec = make_spec(shape={Role.WORKER: 2})
    return pod_template(spec, KEY, Role.WORKER, "http://portal", options, {}, "{}")["spec"].get("affinity")


def test_pods_of_one_run_prefer_one_node_and_demand_nothing():
    (wish,) = affinity(OPTIONS)["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert wish["podAffinityTerm"] == {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {names.RUN: KEY.name}},
    }


def test_the_operator_says_what_near_means_or_that_it_means_nothing():
    rack = affinity(replace(OPTIONS, topology_key="example.com/rack"))["podAffinity"]
    assert rack["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]["topologyKey"] == (
        "example.com/rack"
    )
    assert affinity(replace(OPTIONS, topology_key="")) is None


def test_a_topology_key_that_is_no_label_is_named():
    with pytest.raises(Misconfigured, match="topology_key is 'a b'"):
        TaskOptions.from_table({"image": "tasks:1", "topology_key": "a b"})
