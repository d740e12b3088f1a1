"""The events that can be sent, with their words. Pure. `docs/webhooks.md` has the same table."""

from __future__ import annotations

VERSION = 1
"""Of the JSON body. It grows by members only: one that is removed or changes its meaning is another version."""

EVENTS = {
    "job.launched": "Job launched",
    "job.started": "Job started",
    "job.waiting": "Job waiting long",
    "job.requeued": "Job returned to the queue",
    "job.preempted": "Job preempted",
    "job.succeeded": "Job succeeded",
    "job.failed": "Job failed",
    "job.stopped": "Job stopped",
    "model_version.created": "Model version created",
    "model_version.stage_changed": "Stage of a model version changed",
    "dataset_version.created": "Dataset version added",
    "budget.warned": "Budget has reached a warning level",
    "budget.spent": "Budget used up",
    "sweep.ended": "Sweep ended",
    "schedule.paused": "Schedule paused",
}
TEST = "test"


def event_words(event: str) -> str:
    return "Test" if event == TEST else EVENTS.get(event, event)
