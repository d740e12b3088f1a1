"""An engine for measurements: each job that it is asked of has one worker, which runs and does nothing else."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime

from yardmaster.engines.fake import FakeEngine
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import Observation, TaskPhase, TaskState

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
WORKER = TaskState(Role.WORKER, 0, TaskPhase.RUNNING, started_at=BEGUN)


class SteadyEngine(FakeEngine):
    """Remembers nothing, so that every process sees the same."""

    def __init__(self, *, name: str) -> None:
        super().__init__(name=name)

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        return {key: Observation(True, (WORKER,)) for key in keys}

    def changes(self) -> Iterator[JobKey]:
        threading.Event().wait()  # nothing ever changes
        yield from ()
