"""What a demonstration tells its portal. On Kubernetes: which cluster, which image, and where pods reach the portal.
On a machine that cannot keep servers to its own addresses: that they may be reached all the same.

An operator's own settings come first. Without them it is the development cluster of this project (`make cluster`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from portal import machines
from portal.cluster.choice import DEVELOPMENT_IMAGE
from portal.demo.portal import ROOT, PortalFailed
from portal.up.home import home_of
from yardmaster.engines.supervision.loopback import LoopbackOnly, can_be_kept

OPEN = {"YARDMASTER_LOCAL_OPEN_SERVERS": "1"}
OPEN_NOTE = (
    "This machine cannot keep TensorFlow's servers to its own addresses: while the job runs, other machines can reach "
    "them (YARDMASTER_LOCAL_OPEN_SERVERS=1)."
)
_DEVCLUSTER = ROOT / "deploy" / "devcluster" / "devcluster"


@dataclass(frozen=True)
class Surroundings:
    """Where the demonstration's portal listens, and what it is told besides."""

    host: str = "127.0.0.1"
    settings: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    """What people should know of it."""


def ask_devcluster(word: str) -> str:
    """What `devcluster kubeconfig` or `address` prints. Raises `PortalFailed` with the remedy where it does not run."""
    done = subprocess.run([str(_DEVCLUSTER), word], capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.strip():
        print(
            f"There is no development cluster ({done.stderr.strip() or 'down'}). Bring it up with make cluster, or set"
        )
        print("YARDMASTER_KUBECONFIG, YARDMASTER_KUBERNETES_IMAGE and YARDMASTER_TASK_URL for another one.")
        raise PortalFailed
    return done.stdout.strip()


def surroundings_for(
    engine: str, environment: Mapping[str, str], ask: Callable[[str], str] = ask_devcluster
) -> Surroundings:
    """Of the engine's name and the process's environment. Listens on one address alone: that which pods reach."""
    if engine == "local":
        return Surroundings() if _keeps_to_loopback(environment) else Surroundings(settings=OPEN, note=OPEN_NOTE)
    if engine == "hosts":
        return _of_machines(environment)
    if engine != "kubernetes":
        return Surroundings()
    if environment.get("YARDMASTER_KUBECONFIG") or environment.get("YARDMASTER_KUBERNETES"):
        return Surroundings(environment.get("YARDMASTER_HOST") or "127.0.0.1")
    host = ask("address")
    return Surroundings(
        host,
        {
            "YARDMASTER_KUBECONFIG": ask("kubeconfig"),
            "YARDMASTER_KUBERNETES_IMAGE": environment.get("YARDMASTER_KUBERNETES_IMAGE") or DEVELOPMENT_IMAGE,
            "YARDMASTER_ALLOWED_HOSTS": f"127.0.0.1,localhost,{host}",
        },
    )


def _of_machines(environment: Mapping[str, str]) -> Surroundings:
    """Those of the settings, else those of `make hosts`. Raises `PortalFailed` where there are none."""
    if environment.get("YARDMASTER_HOSTS"):
        return Surroundings(environment.get("YARDMASTER_HOST") or "127.0.0.1")
    found = machines.those_of(home_of(environment, ROOT))
    if found is None:
        print("There are no machines. Bring some up with make hosts, or set YARDMASTER_HOSTS to a list of yours.")
        raise PortalFailed
    return Surroundings(found.gateway, found.settings())


def _keeps_to_loopback(environment: Mapping[str, str]) -> bool:
    is_off = environment.get("YARDMASTER_LOCAL_LOOPBACK_ONLY") == LoopbackOnly.OFF.value
    return not is_off and can_be_kept(sys.executable, ROOT / "platform")
