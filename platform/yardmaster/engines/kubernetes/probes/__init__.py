"""What no setting tells of a cluster, tried with short-lived pods where tasks run: `run(probe, prober, portal_url)`.

Each probe is a module with the program of its pod and the finding that is made of what the pod tells.
"""

from __future__ import annotations

from yardmaster.engines.base import Finding, Probe
from yardmaster.engines.kubernetes.probes import network, processes, reach
from yardmaster.engines.kubernetes.probes.prober import Prober

__all__ = ["Prober", "run"]

_RUNS = {Probe.REACH: reach.find, Probe.NETWORK: network.find, Probe.PROCESSES: processes.find}


def run(probe: Probe, prober: Prober, portal_url: str) -> Finding:
    """Raises what the cluster raises."""
    return _RUNS[probe](prober, portal_url)
