"""An engine whose probes find what the test says."""

from __future__ import annotations

from tests.integration.jobs.world import StagedEngine
from yardmaster.engines.base import Finding, Probe

WELL = Finding(True, "Pods reach the portal at http://10.0.0.1:8080.")

ENFORCED = Finding(True, "The cluster enforces network policies.")


class TryingEngine(StagedEngine):
    """`note` is an option that changes nothing."""

    def __init__(self, *, name: str = "trying", note: str = "") -> None:
        super().__init__(name=name)
        self.says: Finding | Exception = WELL
        """Of its way to the portal."""
        self.says_of_network: Finding | Exception = ENFORCED
        self.asked: list[str] = []
        self.networks = 0

    def probe(self, probe: Probe, portal_url: str) -> Finding:
        if probe is Probe.REACH:
            self.asked.append(portal_url)
        else:
            self.networks += 1
        found = self.says if probe is Probe.REACH else self.says_of_network
        if isinstance(found, Exception):
            raise found
        return found
