"""The contract suite's hand in the tasks of a real cluster: pods of the engine's own making, with the project's runner,
and on this machine a portal that orders a stand-in for the script.

What the stand-in does is a question to that portal, so that telling a task something costs no `kubectl exec`. The
order is the same for all runs, also for those whose tasks would be TensorFlow servers: the image has Python only.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tests.cluster.account import Account
from tests.cluster.reach import Cluster
from tests.contract.engine_harness import ACCESS, FAILED_ONCE, InItsPlace, wait_until
from tests.integration.runner.fake_task_portal import FakeTaskPortal
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase, TaskState
from yardmaster_runner.exits import Ending

PATIENCE = 90.0
"""Seconds until pods have begun on a machine that has other things to do."""

STAND_IN = """
import http.client, os, signal, socket, sys, time

portal = http.client.HTTPConnection(os.environ["STAND_IN"], timeout=10)

def told(word):
    portal.request("GET", "/objects/%s.%s" % (socket.gethostname(), word))
    answer = portal.getresponse()
    content = answer.read()
    return content.decode() if answer.status == 200 else None

if told("stubborn") is not None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("began", flush=True)
while (code := told("exit")) is None:
    if (failure := told("fail")) is not None:
        exec(failure)
    time.sleep(0.1)
sys.exit(int(code))
"""


class ClusterHarness:
    """One for a whole module: its runs share a namespace. `new_engine` begins what a test may change."""

    def __init__(self, cluster: Cluster, account: Account, portal: FakeTaskPortal, prefix: str) -> None:
        self.portal = portal
        self._kubeconfig = account.cluster.kubeconfig
        port = portal.url.rpartition(":")[2]
        self.tasks = {
            "image": cluster.probe_image,
            **account.options,
            "namespace_prefix": prefix,
            "portal_url": portal.url,
            "portal_cidrs": [f"{portal.host}/32"],
            "portal_port": int(port),
        }
        self._namespace_id = new_id()
        self._engines: list[KubernetesEngine] = []
        self.order_stand_in()
        self.engine = self.new_engine()

    def new_engine(self, *, watch: bool = False, **tasks: object) -> KubernetesEngine:
        """Closed with this."""
        self._engines.append(InItsPlace(kubeconfig=self._kubeconfig, tasks={**self.tasks, **tasks}, watch=watch))
        return self._engines[-1]

    def close(self) -> None:
        """End the watches of all engines."""
        for engine in self._engines:
            engine.close()

    def new_key(self) -> JobKey:
        return JobKey(self._namespace_id, new_id(), 1)

    def order_stand_in(self) -> None:
        address = self.portal.url.removeprefix("http://")
        # Longer than any grace period here: who kills a stubborn task is the node, not its runner.
        self.portal.orders(
            STAND_IN,
            spec_strategy="between_graph",
            spec_roles={"worker": {"replicas": 2}, "ps": {"replicas": 1}},
            spec_grace_period=600,
            spec_environment={"STAND_IN": address},
        )

    def let_begin(self, key: JobKey) -> None:
        """Running for the engine, and so far that the stand-in has asked what to do."""
        wait_until(self.engine, key, lambda seen: all(self._has_begun(key, task) for task in seen.tasks), PATIENCE)

    def let_end(self, key: JobKey, role: Role, index: int, exit_code: int) -> None:
        self.portal.files[f"{key.name}-{role.value}-{index}.exit"] = str(exit_code).encode()

    def let_fail(self, key: JobKey, role: Role, index: int, ending: Ending = FAILED_ONCE) -> None:
        """By an exception from which the runner makes this ending; its signature follows from the message."""
        name, _, text = ending.message.partition(": ")
        failure = f"print('step {ending.reached}', flush=True)\nraise {name}({text!r})"
        self.portal.once[f"{key.name}-{role.value}-{index}.fail"] = failure.encode()

    def make_stubborn(self, key: JobKey, role: Role, index: int) -> None:
        self.portal.files[f"{key.name}-{role.value}-{index}.stubborn"] = b""

    def _has_begun(self, key: JobKey, task: TaskState) -> bool:
        has_asked = f"{key.name}-{task.role.value}-{task.index}.exit" in self.portal.served
        return task.phase is TaskPhase.RUNNING and has_asked


@contextmanager
def cluster_harness(cluster: Cluster, account: Account) -> Iterator[ClusterHarness]:
    """Its namespaces have a prefix of their own, by which they are removed."""
    prefix = f"{account.prefix}e{secrets.token_hex(2)}-"
    with FakeTaskPortal(cluster.own_address, ACCESS.token) as portal:
        try:
            with closing(ClusterHarness(cluster, account, portal, prefix)) as harness:
                yield harness
        finally:
            cluster.remove_namespaces(prefix)
