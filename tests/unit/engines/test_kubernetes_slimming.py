"""What is kept of an object that a watch told. That no fact is lost is checked by every test of facts (`states`)."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

from tests.unit.core.generators import make_spec
from tests.unit.engines.kubernetes_objects import BEGUN, KEY, OPTIONS, container, pod
from yardmaster.engines.kubernetes.observe.store import RunStore, slimmed
from yardmaster.engines.kubernetes.render.pods import pod_template
from yardmaster.job.spec import Role

CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
SPACE = OPTIONS.namespace_prefix + "x"


def as_servers_write_it(index: int) -> dict[str, Any]:
    """A running pod with all that a server and a kubelet put into it; as read from their text, nothing is shared."""
    made = pod(Role.WORKER, index, "Running", conditions=[
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": BEGUN} for kind in CONDITIONS
    ], podIP=f"10.0.0.{index % 250}", podIPs=[{"ip": f"10.0.0.{index % 250}"}], qosClass="Guaranteed",
        containerStatuses=container(
            state={"running": {"startedAt": BEGUN}}, lastState={}, image="tasks:1", imageID="sha256:" + "a" * 64,
            containerID="containerd://" + "b" * 64, volumeMounts=[{"name": "work", "mountPath": "/work"}] * 5,
            resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
        ))  # fmt: skip
    fields = {f"f:field-{number}": {"f:one": {}, "f:other": {}} for number in range(40)}
    made["metadata"] |= {
        "namespace": SPACE, "uid": f"uid-{index}", "resourceVersion": str(index + 2), "creationTimestamp": BEGUN,
        "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}],
    }  # fmt: skip
    made["spec"] |= pod_template(make_spec(), KEY, Role.WORKER, "http://10.0.0.1", OPTIONS, {}, "{}")["spec"]
    return dict(json.loads(json.dumps(made)))


def test_what_is_read_stays_and_the_rest_goes():
    kept = slimmed(as_servers_write_it(7))
    assert kept["spec"] == {"nodeName": "node-1"}
    assert kept["metadata"].keys() == {
        "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels", "annotations",
    }  # fmt: skip
    (status,) = kept["status"]["containerStatuses"]
    assert status.keys() == {"name", "state", "lastState", "restartCount"}
    assert [one["type"] for one in kept["status"]["conditions"]] == list(CONDITIONS)


def test_the_object_itself_is_left_as_it_was():
    found = as_servers_write_it(1)
    before = json.dumps(found)
    slimmed(found)
    assert json.dumps(found) == before


def test_equal_words_of_many_objects_are_kept_once():
    one, other = slimmed(as_servers_write_it(1)), slimmed(as_servers_write_it(2))
    assert one["metadata"]["creationTimestamp"] is other["metadata"]["creationTimestamp"]
    for first, second in zip(one["metadata"]["labels"], other["metadata"]["labels"], strict=True):
        assert first is second


def test_a_watched_pod_takes_a_few_kilobytes():
    store, number = RunStore(OPTIONS.namespace_prefix), 300
    store.replace("Pod", [], "1")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for index in range(number):
            store.take("Pod", "ADDED", as_servers_write_it(index))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(store.view(SPACE, KEY.name)["Pod"].found) == number
    assert (after - before) / number < 6_000
