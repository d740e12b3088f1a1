"""Does the cluster bound how many processes and threads a pod may have? Tried in a pod, for nothing shows it.

The bound (`podPidsLimit`) is the kubelet's: it stands in no object, the kubelet tells it only to those who may reach
every node, and within a pod its control group is not to be seen, only the container's below it, which has none. So a
pod of the tasks' own kind begins threads until it may not, or until it has `MOST`, and says which. It ends by itself.

Not here: when it is asked (`manage.py doctor`).
"""

from __future__ import annotations

from yardmaster.engines.base import Finding
from yardmaster.engines.kubernetes.probes.pod import ProbeAnswer, nonsense
from yardmaster.engines.kubernetes.probes.prober import Prober

MOST = 5000
"""More than what is usual as a bound (1,024 to 4,096), and little enough for a node that has none."""
BOUNDED, UNBOUNDED = 0, 3
PATIENCE = 120.0
PROGRAM = f"""
import os, sys, threading
threading.stack_size(65536)
gate, begun = threading.Event(), 0
try:
    while begun < {MOST}:
        threading.Thread(target=gate.wait, daemon=True).start()
        begun += 1
except RuntimeError:
    pass
with open("/dev/termination-log", "w") as file:
    file.write(str(begun))
os._exit({UNBOUNDED} if begun >= {MOST} else {BOUNDED})
"""
AMOUNTS = {"cpu": "200m", "memory": "512Mi"}
_REMEDY = (
    "Ask the cluster's administrators to set podPidsLimit (4096, say) in the kubelets' configuration: "
    "docs/kubernetes.md, section Disk and processes."
)
_BY_HAND = (
    "On a node: kubectl get --raw /api/v1/nodes/NODE/proxy/configz, as an administrator; podPidsLimit is above 0."
)


def find(prober: Prober, portal_url: str, patience: float = PATIENCE) -> Finding:
    """Whether the node that the pod came to bounds them."""
    with prober.namespace(portal_url, patience) as namespace:
        return finding_of(namespace.tell("processes", ["-c", PROGRAM], AMOUNTS))


def finding_of(answer: ProbeAnswer) -> Finding:
    """What the pod's end means."""
    begun = answer.message.strip()[:20]
    if answer.exit_code == BOUNDED and not answer.problem:
        return Finding(True, f"A pod may have no more than about {begun} threads and processes.")
    if answer.exit_code == UNBOUNDED and not answer.problem:
        message = f"A pod began {begun} threads and nothing stopped it: one task can take all processes of its node."
        return Finding(False, message, _REMEDY)
    message = f"It is not known whether a pod may have any number of processes. {nonsense(answer)}"
    return Finding(None, message, _BY_HAND)
