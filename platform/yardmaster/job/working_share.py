"""Which part of what an attempt may keep of its working folders a task has."""

from __future__ import annotations

from yardmaster.job.spec import Role, Strategy, TrainingSpec
from yardmaster.job.strategy import leading_task


def share_of(spec: TrainingSpec, role: Role, index: int) -> float:
    """All of it for the only task that keeps files; else half for the task that decides, and the rest for the others in
    equal parts. Independent tasks have equal parts. Parameter servers keep nothing."""
    tasks = sum(spec.replicas(one) for one in Role if one is not Role.PS)
    if role is Role.PS or tasks <= 1:
        return 1.0
    if spec.strategy is Strategy.BATCH:
        return 1 / tasks
    return 0.5 if (role, index) == leading_task(spec) else 0.5 / (tasks - 1)
