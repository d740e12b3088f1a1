"""Ask the model that the demonstration trained: serve it, send it sentences, and stop it again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from portal.demo.stage import Stage, StoryFailed
from yardmaster_client import Job

PATIENCE = 150.0
_COMES = frozenset({"queued", "starting", "loading"})


def predictions(stage: Stage, version: str, sentences: Sequence[str]) -> list[tuple[str, float]]:
    """What a version of a model says of sentences: the sentiment, and how sure it is. Raises `StoryFailed`."""
    with _served(stage, version):
        rows = [{"text": one} for one in sentences]
        answer = stage.portal.transport.post(f"model-versions/{version}/predict/", {"instances": rows})
    try:
        return [(str(one["sentiment"]), max(map(float, one["probabilities"]))) for one in answer["predictions"]]
    except (KeyError, TypeError, ValueError) as error:
        raise StoryFailed(f"The served model answered without sentiments: {str(answer)[:200]}") from error


@contextmanager
def _served(stage: Stage, version: str) -> Iterator[None]:
    """A version that answers, until the block ends. Raises `StoryFailed` where it does not come up."""
    portal = stage.portal
    service = portal.transport.post("services/", {"model_version": version, "engine": stage.engine})
    job = portal.jobs.get(service["job"])
    stage.running.append(job)
    try:
        _until_ready(stage, service)
        yield
    finally:
        portal.transport.post(f"services/{service['id']}/stop/")
        stage.until_cleaned_up(job)


def _until_ready(stage: Stage, service: dict[str, Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    said = ""
    while service["state"] in _COMES and time.monotonic() < deadline:
        if service["message"] and service["message"] != said:
            said = service["message"]
            stage.console.print(f"The model server: {said}")
        time.sleep(0.5)
        service = stage.portal.transport.get(f"services/{service['id']}/")
    if service["state"] != "ready":
        raise StoryFailed(f"The model is {service['state']}, not served: {service['message']} {service['remedy']}")


def model_of(job: Job) -> str:
    """The version of the model that a job exported. Raises `StoryFailed`."""
    if not job.model:
        raise StoryFailed(f"{job.name} has succeeded, and exported no model.")
    return str(job.model)
