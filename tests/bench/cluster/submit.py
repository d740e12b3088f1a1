"""From the first request to the last pod: the engine against a bare client that posts the same manifests in order.

The pods want a node that there is not: they are made, which is measured, and not begun, which would fill the machine
that measures. The namespace is there before, for both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from kubernetes import client

from tests.bench.cluster.ground import NO_PORTAL, ground, new_key, shaped_namespace, spec_of
from tests.bench.lines import Line, interleaved, median
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.connection import connect
from yardmaster.engines.kubernetes.render.manifests import TO_BE_KNOWN, TOKEN_TO_BE_KNOWN
from yardmaster.engines.kubernetes.render.names import RUN
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, TrainingSpec

ROUNDS = 20
MOST = 1.5
SPECS = {workers: spec_of({Role.PS: 1, Role.WORKER: workers, Role.CHIEF: 1}) for workers in (2, 8)}
NOWHERE = {"yardmaster-bench/node": "none"}
EVERY = 0.01
PATIENCE = 60.0


def measure() -> Iterable[Line]:
    with ground() as here:
        engine, _ = here.engine(node_selector=NOWHERE)
        place = shaped_namespace(engine)
        for workers, spec in SPECS.items():
            scene = Scene(engine, BareClient(connect(here.cluster.kubeconfig)), place, spec)
            scene.through_engine()  # the first of each opens connections
            scene.bare()
            through, bare = interleaved(scene.through_engine, scene.bare, ROUNDS)
            yield Line(f"a bare client: all pods of {workers} workers made", 1000 * median(bare), "ms")
            yield Line(f"the engine: all pods of {workers} workers made", 1000 * median(through), "ms")
            yield Line("... times the bare client", median(through) / median(bare), at_most=MOST,
                       note=f"medians of {ROUNDS}")  # fmt: skip


class BareClient:
    """The package's own typed verbs, one post after the other."""

    def __init__(self, connection: client.ApiClient) -> None:
        core, batch, apps = client.CoreV1Api(connection), client.BatchV1Api(connection), client.AppsV1Api(connection)
        networking = client.NetworkingV1Api(connection)
        self.pods = core
        self._creates = {
            "ConfigMap": core.create_namespaced_config_map,
            "NetworkPolicy": networking.create_namespaced_network_policy,
            "Secret": core.create_namespaced_secret,
            "Job": batch.create_namespaced_job,
            "StatefulSet": apps.create_namespaced_stateful_set,
        }

    def post(self, manifests: Iterable[dict[str, Any]]) -> None:
        """In order. What belongs to the owner or to the token is told its uid."""
        uids: dict[str, str] = {}
        for one in manifests:
            text = json.dumps(one)
            for placeholder, kind in ((TOKEN_TO_BE_KNOWN, "Secret"), (TO_BE_KNOWN, "ConfigMap")):
                text = text.replace(placeholder, uids.get(kind, placeholder))
            made = self._creates[one["kind"]](one["metadata"]["namespace"], json.loads(text))
            uids[one["kind"]] = made.metadata.uid

    def count(self, namespace: str, run: str) -> int:
        """Pods of the run."""
        answer = self.pods.list_namespaced_pod(namespace, label_selector=f"{RUN}={run}", _preload_content=False)
        return len(json.loads(answer.data)["items"])


class Scene:
    """One kind of job, made in both ways."""

    def __init__(self, engine: KubernetesEngine, bare: BareClient, place: JobKey, spec: TrainingSpec) -> None:
        self._engine, self._bare, self._place, self._spec = engine, bare, place, spec
        self._pods = sum(one.replicas for one in spec.roles.values())

    def through_engine(self) -> float:
        """Seconds."""
        key = new_key(self._place)
        begun = time.monotonic()
        self._engine.submit(self._spec, key, NO_PORTAL)
        return self._until_made(key, begun)

    def bare(self) -> float:
        """Seconds."""
        key = new_key(self._place)
        manifests = self._engine.preview(self._spec, key)
        begun = time.monotonic()
        self._bare.post(manifests)
        return self._until_made(key, begun)

    def _until_made(self, key: JobKey, begun: float) -> float:
        """Then the run is removed, so that the next one finds the same namespace."""
        namespace = self._engine.preview(self._spec, key)[0]["metadata"]["namespace"]
        while self._bare.count(namespace, key.name) < self._pods:
            if time.monotonic() > begun + PATIENCE:
                raise RuntimeError(f"not all pods of {key.name} were made within {PATIENCE:g} s")
            time.sleep(EVERY)
        took = time.monotonic() - begun
        self._engine.clean_up(key)
        while self._bare.count(namespace, key.name):
            time.sleep(EVERY)
        return took
