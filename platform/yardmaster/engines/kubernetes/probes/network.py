"""Does the cluster enforce NetworkPolicies? Without that, tasks of one user reach those of another.

Two pods, one of which listens at three ports. Policies allow the way to the first at both ends, to the second only out
of the pod that tries, to the third only into the one that listens. Where policies hold, only the first way is open; and
that it is open shows that the others are closed by them, and not by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yardmaster.engines.base import Finding
from yardmaster.engines.kubernetes.probes.pod import PROBE, ProbeAnswer, nonsense
from yardmaster.engines.kubernetes.probes.prober import ProbeNamespace, Prober

OPEN, ONLY_OUT, ONLY_IN = 8001, 8002, 8003
PATIENCE = 90.0
"""Seconds, for both pods one after the other."""
SETTLES_WITHIN = 20.0
"""Seconds: a network may take some to heed the policies of a new pod."""
LISTENER, TRIER = "listener", "trier"

LISTEN = f"""
import socket, threading

def listen(port):
    if socket.has_dualstack_ipv6():
        server = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    else:
        server = socket.create_server(("", port))
    while True:
        server.accept()[0].close()

for port in ({ONLY_OUT}, {ONLY_IN}, {OPEN}):
    threading.Thread(target=listen, args=(port,)).start()
"""

TRY = """
import concurrent.futures, json, socket, sys, time

host, seconds, ports = sys.argv[1], float(sys.argv[2]), sys.argv[3:]

def trouble(port):
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
        return ""
    except OSError as error:
        return str(error)[:150] or type(error).__name__

end = time.time() + seconds
with concurrent.futures.ThreadPoolExecutor(len(ports)) as pool:
    while True:
        found = dict(zip(ports, pool.map(trouble, ports)))
        first, *others = found.values()
        if (not first and all(others)) or time.time() > end:
            break
        time.sleep(0.5)
with open("/dev/termination-log", "w") as log:
    log.write(json.dumps(found))
"""
_REMEDY = (
    "Run a network that enforces them, such as Calico or Cilium, on every node (docs/kubernetes.md, What a namespace "
    "is on the cluster). Until then, let only users launch here who may read each other's data."
)


def find(prober: Prober, portal_url: str, patience: float = PATIENCE) -> Finding:
    """Whether policies hold, at both ends of a connection."""
    with prober.namespace(portal_url, patience) as namespace:
        _open_ways(namespace)
        listener = namespace.address_of(LISTENER, ["-c", LISTEN])
        if listener.problem:
            return _unknown(listener.problem)
        ports = [str(port) for port in (OPEN, ONLY_OUT, ONLY_IN)]
        answer = namespace.tell(TRIER, ["-c", TRY, listener.message, str(SETTLES_WITHIN), *ports])
    return finding_of(answer)


def finding_of(answer: ProbeAnswer) -> Finding:
    """What the pod's words mean: by port why there was no connection, empty where there was one."""
    read = answer.table()
    if not {str(OPEN), str(ONLY_IN), str(ONLY_OUT)} <= read.keys():
        return _unknown(nonsense(answer))
    way, out, into = (str(read[str(port)]) for port in (OPEN, ONLY_IN, ONLY_OUT))
    if way:
        return _unknown(f"The way that its policies allow is closed as well: {way}.")
    if out and into:
        return Finding(True, "The cluster enforces network policies.")
    ends = " and ".join(end for end, closed in (("out of pods", out), ("into pods", into)) if not closed)
    message = f"The cluster does not enforce network policies: connections {ends} get through against them."
    return Finding(False, f"{message} Tasks can reach those of other users.", _REMEDY)


def _unknown(why: str) -> Finding:
    return Finding(None, f"It is not known whether the cluster enforces network policies. {why}")


def _open_ways(namespace: ProbeNamespace) -> None:
    """Besides the namespace's own policies, which close all but the way to the portal."""
    for name, side, peer, direction, ports in (
        (LISTENER, "ingress", TRIER, "from", (OPEN, ONLY_IN)),
        (TRIER, "egress", LISTENER, "to", (OPEN, ONLY_OUT)),
    ):
        rule: Mapping[str, Any] = {
            direction: [{"podSelector": {"matchLabels": {PROBE: peer}}}],
            "ports": [{"protocol": "TCP", "port": port} for port in ports],
        }
        spec = {"podSelector": {"matchLabels": {PROBE: name}}, "policyTypes": [side.capitalize()], side: [rule]}
        namespace.apply("NetworkPolicy", "networking.k8s.io/v1", name, spec)
