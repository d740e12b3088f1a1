"""An engine that says of its way to the portal what the test says."""

from __future__ import annotations

from tests.integration.jobs.world import StagedEngine
from yardmaster.engines.base import Reach

WELL = Reach(True, "Pods reach the portal at http://10.0.0.1:8080.")


class TryingEngine(StagedEngine):
    """`note` is an option that changes nothing."""

    def __init__(self, *, name: str = "trying", note: str = "") -> None:
        super().__init__(name=name)
        self.says: Reach | Exception = WELL
        self.asked: list[str] = []

    def reach(self, portal_url: str) -> Reach:
        self.asked.append(portal_url)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says
