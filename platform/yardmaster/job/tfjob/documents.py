"""The TFJob among the documents of a file, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec_limits import shorten
from yardmaster.job.spec_reading import show

GROUP = "kubeflow.org/"
VERSION = f"{GROUP}v1"
_OTHER_TRAINERS = ("PyTorchJob", "MPIJob", "XGBoostJob", "MXJob", "PaddleJob", "JAXJob")
MOST_OTHERS = 50
"""That are named."""
_BY_HAND = "Write a job file by hand: docs/migrating.md says how."


def find_tfjob(documents: Sequence[object]) -> tuple[Mapping[str, Any], list[str]]:
    """The one TFJob, and what the others are (`Service mnist`). Raises `SpecRejected` where there is none, or another
    than version v1, or more than one."""
    objects = [one for document in documents for one in _flattened(document)]
    found = [one for one in objects if isinstance(one, Mapping) and _is_tfjob(one)]
    others = [_called(one) for one in objects if one is not None and not _is_tfjob(one)][:MOST_OTHERS]
    if not found:
        raise SpecRejected([_no_tfjob(objects, others)])
    if len(found) > 1:
        called = shorten(", ".join(map(_called, found[:MOST_OTHERS])), 200)
        message = f"The file has {len(found)} TFJobs: {called}."
        raise SpecRejected([Problem("kind", "several_tfjobs", message, "Import them one at a time.", str(len(found)))])
    version = found[0].get("apiVersion")
    if version != VERSION:
        raise SpecRejected([_wrong_version(version)])
    return found[0], others


def _is_tfjob(one: object) -> bool:
    return isinstance(one, Mapping) and one.get("kind") == "TFJob"


def _flattened(document: object) -> Sequence[object]:
    """The objects of a `List`, or the one that it is."""
    if isinstance(document, Mapping) and document.get("kind") == "List" and isinstance(document.get("items"), list):
        items: Sequence[object] = document["items"]
        return items
    return [document]


def _called(one: object) -> str:
    if not isinstance(one, Mapping):
        return show(one)
    metadata = one.get("metadata")
    name = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, Mapping) else ""
    return f"{show(one.get('kind', 'an object without a kind'))} {show(name) if name else ''}".strip()


def _wrong_version(version: object) -> Problem:
    shown = show(version)
    if isinstance(version, str) and version.startswith(GROUP):
        message = (
            f"This is a TFJob of {shown}, which the training operator no longer reads, and neither does Yardmaster."
        )
        remedy = "Write apiVersion: kubeflow.org/v1, with spec.tfReplicaSpecs and, below it, spec.runPolicy."
        return Problem("apiVersion", "old_version", message, remedy, shown)
    message = "A TFJob has the apiVersion kubeflow.org/v1."
    return Problem("apiVersion", "bad_value", message, f"Write apiVersion: {VERSION}.", shown)


def _no_tfjob(objects: Sequence[object], others: Sequence[str]) -> Problem:
    kinds = [one.get("kind") for one in objects if isinstance(one, Mapping)]
    if "TrainJob" in kinds:
        message = "A TrainJob of Kubeflow Trainer v2 names a runtime of its cluster, which says most of what it runs."
        return Problem("kind", "other_kind", message, f"{_BY_HAND} Only kind: TFJob is imported.", "TrainJob")
    if trainer := next((kind for kind in kinds if kind in _OTHER_TRAINERS), None):
        message = f"A {trainer} is not a training with TensorFlow's cluster. Only kind: TFJob is imported."
        return Problem("kind", "other_kind", message, _BY_HAND, trainer)
    there = f" It has: {shorten(', '.join(others), 200)}." if others else ""
    message = f"The text has no object of kind TFJob.{there}"
    remedy = (
        "Paste the TFJob as `kubectl get tfjob NAME -o yaml` shows it. A job file belongs into the job file's field."
    )
    return Problem("kind", "not_a_tfjob", message, remedy)
