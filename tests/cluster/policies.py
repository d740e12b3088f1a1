"""Who reaches whom: pods that try to connect to everything around them, from within the run of a job, from beside it,
and from where no policy holds.

Tried, never looked up: what enforces NetworkPolicy on a cluster may be no pod at all. A refused connection counts as
one that got through, since it was answered. Not here: what is made of it (the tests, the benchmark).
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from tests.cluster.pods import ended, pod
from tests.cluster.reach import DEVCLUSTER, Cluster, wait_for
from tests.contract.engine_harness import spec_of
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.render import names
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import Resources, Role, RoleSpec
from yardmaster.queueing.ledger import Quota

PORT = 8000
METADATA = "169.254.169.254"
"""Where clouds tell a machine its keys."""
PORTAL, NAMES, OWN_RUN = "the portal", "names", "its own run"
WITHIN = frozenset({PORTAL, NAMES, OWN_RUN})
"""What a task may reach."""
TINY = Resources(cpu=0.02, memory=48 << 20)

LISTEN = f"""
import socket
server = socket.create_server(("0.0.0.0", {PORT}), backlog=512)
while True:
    server.accept()[0].close()
"""

TRY = """
import concurrent.futures, json, os, socket

def connects(host, port):
    try:
        address = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4]
        if port:
            socket.create_connection(address, timeout=3).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True

def gets_through(target):
    # The policies and names of a new pod take a moment; what is held is held each time.
    name, host, port = target
    return name, any(connects(host, port) for _ in range(3))

attempts = json.loads(os.environ["TARGETS"]) * int(os.environ["ROUNDS"])
found = {}
with concurrent.futures.ThreadPoolExecutor(24) as pool:
    for name, through in pool.map(gets_through, attempts):
        counted = found.setdefault(name, [0, 0])
        counted[not through] += 1
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Tried:
    """How many attempts of one kind got through, and how many did not."""

    through: int
    held: int


class Surroundings:
    """Two runs in one namespace, one in another, a namespace without policies, and what stands around the pods: the
    portal, its database and its Valkey on this machine, the API server, the kubelet, a cloud's metadata."""

    def __init__(self, cluster: Cluster, prefix: str, portal: int, database: int, valkey: int) -> None:
        self._cluster = cluster
        tasks = {"image": cluster.probe_image, "namespace_prefix": prefix}
        self.engine = KubernetesEngine(kubeconfig=cluster.kubeconfig, tasks=tasks)
        self._access = TaskAccess(f"http://{cluster.own_address}:{portal}", "a-token")
        here, there = new_id(), new_id()
        self.mine, self.beside = self._run(here), self._run(here)
        self.elsewhere = self._run(there)
        self.open = f"{prefix}open"
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.open}})
        cluster.kubectl("wait", "--for=create", "serviceaccount/default", "-n", self.open, "--timeout=30s")
        node = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"][0]["status"]["addresses"]
        node_address = next(one["address"] for one in node if one["type"] == "InternalIP")
        served = cluster.get("endpoints", "kubernetes", "default")["subsets"][0]
        self._targets: dict[str, tuple[str, int]] = {
            PORTAL: (cluster.own_address, portal),
            NAMES: ("kubernetes.default.svc.cluster.local", 0),
            "the portal's database": (cluster.own_address, database),
            "the portal's Valkey": (cluster.own_address, valkey),
            "the API server": (served["addresses"][0]["ip"], served["ports"][0]["port"]),
            "the API server's Service": ("kubernetes.default.svc.cluster.local", 443),
            "the kubelet": (node_address, 10250),
            "a cloud's metadata": (METADATA, 80),
        }

    def _run(self, namespace_id) -> JobKey:
        self.engine.shape(namespace_id, Quota(), self._access.portal_url)
        key = JobKey(namespace_id, new_id(), 1)
        self.engine.submit(
            spec_of(roles={Role.WORKER: RoleSpec(1, TINY), Role.PS: RoleSpec(1, TINY)}), key, self._access
        )
        return key

    def _place(self, key: JobKey | None) -> tuple[str, dict[str, str]]:
        if key is None:
            return self.open, {}
        return names.namespace_name(key.namespace_id, self.engine.options), {names.RUN: key.name}

    def listen(self) -> None:
        """A listener in each run, and one where no policy holds."""
        for key in (self.mine, self.beside, self.elsewhere, None):
            self._make(key, "listener", LISTEN)
        beside = {self.mine: OWN_RUN, self.beside: "another run of the namespace", self.elsewhere: "another namespace"}
        for key, name in {**beside, None: "a pod without policies"}.items():
            address = wait_for(f"{name}'s address", partial(self._running_at, key))
            self._targets[name] = (address, PORT)

    def _running_at(self, key: JobKey | None) -> str | None:
        place, _ = self._place(key)
        status = self._cluster.get("pod", _name("listener", key), place).get("status", {})
        return status.get("podIP") if status.get("phase") == "Running" else None

    def tries(self, key: JobKey | None, rounds: int = 1) -> Mapping[str, Tried]:
        """What a pod gets through to that belongs to this run, or to none where no policy holds."""
        targets = json.dumps([[name, *where] for name, where in self._targets.items()])
        self._make(key, "tries", TRY, TARGETS=targets, ROUNDS=str(rounds))
        place, _ = self._place(key)
        name = _name("tries", key)
        assert ended(self._cluster, place, name) == 0, self._cluster.log(name, place)
        found = json.loads(self._cluster.log(name, place))
        return {name: Tried(*counts) for name, counts in found.items()}

    def _make(self, key: JobKey | None, what: str, script: str, **environment: str) -> None:
        place, labels = self._place(key)
        manifest = pod(self._cluster, place, _name(what, key), script, environment=environment)
        manifest["metadata"]["labels"] |= labels
        self._cluster.apply(manifest)


def _name(what: str, key: JobKey | None) -> str:
    return f"{what}-{key.name}" if key else what


@contextlib.contextmanager
def surroundings(cluster: Cluster) -> Iterator[Surroundings]:
    """They are gone afterwards."""
    prefix = f"yr{secrets.token_hex(3)}-"
    try:
        with contextlib.ExitStack() as stack:
            ports = [stack.enter_context(_listener(cluster.own_address)) for _ in range(3)]
            if cluster.is_developed:
                stack.enter_context(_metadata_of_the_node())
            made = Surroundings(cluster, prefix, *ports)
            made.listen()
            yield made
    finally:
        cluster.remove_namespaces(prefix)


@contextlib.contextmanager
def _listener(address: str) -> Iterator[int]:
    """A port of this machine that takes connections."""
    with socket.create_server((address, 0), backlog=512) as server:
        server.settimeout(0.2)
        ends = threading.Event()
        thread = threading.Thread(target=_accept, args=(server, ends), daemon=True)
        thread.start()
        yield server.getsockname()[1]
        ends.set()
        thread.join()


def _accept(server: socket.socket, ends: threading.Event) -> None:
    while not ends.is_set():
        with contextlib.suppress(TimeoutError):
            server.accept()[0].close()


@contextlib.contextmanager
def _metadata_of_the_node() -> Iterator[None]:
    """A server that answers at that address, within the node: else nothing would get through in any case."""
    address = [f"{METADATA}/32", "dev", "lo"]
    listen = f"import http.server as h; h.HTTPServer(('{METADATA}', 80), h.BaseHTTPRequestHandler).serve_forever()"
    subprocess.run([DEVCLUSTER, "enter", "ip", "address", "replace", *address], check=True, timeout=30)
    server = subprocess.Popen(
        [DEVCLUSTER, "enter", "timeout", "300", "python3", "-c", listen], stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        server.terminate()
        server.wait(10)
        subprocess.run([DEVCLUSTER, "enter", "ip", "address", "del", *address], check=True, timeout=30)
