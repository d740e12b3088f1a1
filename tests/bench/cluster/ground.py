"""Where measurements on a cluster take place: namespaces under a prefix of their own, gone at the end.

Not here: what is measured there.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.bench.bench_portal import BenchPortal, bench_portal
from tests.bench.cluster.counted import Counter
from tests.cluster.reach import NEEDED, Cluster, find_cluster
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect
from yardmaster.errors import Misconfigured
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.queueing.ledger import Quota

NO_PORTAL = TaskAccess("http://192.0.2.1:8080", "a-token")
"""A portal that never answers: tasks begin and wait for it."""
TINY = Resources(cpu=0.02, memory=48 << 20)


@dataclass(frozen=True)
class Ground:
    """A cluster, and the prefix of the namespaces that belong to this measurement."""

    cluster: Cluster
    prefix: str

    def engine(self, *, watch: bool = False, **tasks: Any) -> tuple[KubernetesEngine, Counter]:
        """An engine as the portal makes it, and the count of what it asks."""
        connection = connect(self.cluster.kubeconfig)
        counter = Counter(connection)
        table = {"image": self.cluster.probe_image, "namespace_prefix": self.prefix, **tasks}
        return KubernetesEngine(tasks=table, api=Api(connection), watch=watch), counter

    def settings(self) -> dict[str, str]:
        """What a portal is told that runs its jobs here. Raises `Misconfigured` where pods could not reach it."""
        host = self.cluster.own_address
        if not host:
            raise Misconfigured(
                "The address at which pods reach this machine is not set.", remedy="Set YARDMASTER_TEST_OWN_ADDRESS."
            )
        return {
            "YARDMASTER_KUBECONFIG": self.cluster.kubeconfig,
            "YARDMASTER_KUBERNETES_IMAGE": self.cluster.probe_image,
            "YARDMASTER_KUBERNETES_TASKS": json.dumps({"namespace_prefix": self.prefix}),
            "YARDMASTER_DEFAULT_ENGINE": "kubernetes",
            "YARDMASTER_ALLOWED_HOSTS": f"127.0.0.1,localhost,{host}",
        }

    def namespaces(self) -> list[str]:
        """Of this measurement, by name."""
        found = self.cluster.kubectl("get", "namespaces", "-o", "jsonpath={.items[*].metadata.name}").split()
        return [name for name in found if name.startswith(self.prefix)]

    def leave(self) -> None:
        """Begin to remove everything."""
        for name in self.namespaces():
            self.cluster.remove_namespace(name)


@contextmanager
def ground() -> Iterator[Ground]:
    """Raises `Misconfigured` where there is no cluster."""
    cluster = find_cluster()
    if cluster is None:
        raise Misconfigured("There is no cluster to measure on.", remedy=NEEDED)
    here = Ground(cluster, f"yardmaster-b{secrets.token_hex(3)}-")
    try:
        yield here
    finally:
        here.leave()


@contextmanager
def portal_on(here: Ground, **settings: str) -> Iterator[BenchPortal]:
    """A whole portal whose jobs run there. `settings` are more environment variables."""
    with bench_portal(here.cluster.own_address, here.settings() | settings) as portal:
        yield portal


def shaped_namespace(engine: KubernetesEngine) -> JobKey:
    """A namespace as the portal makes it, and a first key in it."""
    key = new_key()
    engine.shape(key.namespace_id, Quota(), NO_PORTAL.portal_url)
    return key


def new_key(beside: JobKey | None = None) -> JobKey:
    """Of a new job, in a new namespace or in that of another job."""
    return JobKey(beside.namespace_id if beside else new_id(), new_id(), 1)


def spec_of(replicas: Mapping[Role, int], strategy: Strategy = Strategy.PARAMETER_SERVER) -> TrainingSpec:
    """The smallest tasks that a pod can be."""
    return TrainingSpec(
        name="bench",
        strategy=strategy,
        roles={role: RoleSpec(count, TINY) for role, count in replicas.items()},
        code_version=new_id(),
        entry_point="main.py",
        retries=0,
    )
