"""The secrets to pull images with, copied from one namespace of the operator's: those of all images into each namespace
of the portal's, that of an image of the catalogue into the namespace of a run that has the image, for as long. Pure.

A copy cannot be compared with its source where it lies: the portal may not read Secrets there. Hence what the copies
were made of is noted as a digest on the account that pods run as, and they are written again at every look.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import Misconfigured
from yardmaster.ids import JobKey

TYPES = ("kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg")
"""Of Secrets that hold nothing but access to registries. No other is ever copied."""
_LONGEST_VERSION = 16


def copy_of(
    name: str, source: Mapping[str, Any] | None, namespace_id: uuid.UUID, options: TaskOptions
) -> dict[str, Any]:
    """The same in a namespace of the portal. Raises `Misconfigured` where it cannot be copied."""
    labels = {names.MANAGED_BY: names.US, names.NAMESPACE_ID: str(namespace_id)}
    metadata = {"name": name, "namespace": names.namespace_name(namespace_id, options), "labels": labels}
    remedy = "Make it there, or correct image_pull_secrets or pull_secrets_from in YARDMASTER_KUBERNETES_TASKS."
    return _with_metadata(metadata, name, source, remedy, options)


def copy_for_run(
    name: str, source: Mapping[str, Any] | None, copy: str, key: JobKey, owner_uid: str, options: TaskOptions
) -> dict[str, Any]:
    """The same for one run, whose end takes it along. Raises `Misconfigured` where it cannot be copied."""
    metadata = names.metadata(copy, key, options)
    metadata["labels"][names.OWNER] = owner_uid
    metadata["ownerReferences"] = [names.reference("ConfigMap", key.name, owner_uid)]
    remedy = "Make it there (kubectl create secret docker-registry), or correct the pull secret of the job's image."
    return _with_metadata(metadata, name, source, remedy, options)


def _with_metadata(
    metadata: Mapping[str, Any], name: str, source: Mapping[str, Any] | None, remedy: str, options: TaskOptions
) -> dict[str, Any]:
    place = options.pull_secrets_from
    if source is None:
        raise Misconfigured(f"There is no Secret {name} in the cluster's namespace {place}.", remedy=remedy)
    if source.get("type") not in TYPES:
        raise Misconfigured(
            f"The Secret {name} in the cluster's namespace {place} is of type {source.get('type')!r}: it was not "
            "copied.",
            remedy=f"Make it as one of {' or '.join(TYPES)} (kubectl create secret docker-registry).",
        )
    data = dict(source.get("data") or {})
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": source["type"], "data": data}


def digest_of(copies: Sequence[Mapping[str, Any]]) -> str:
    """Of what they hold, in any order; empty where there are none. It tells nothing of it."""
    if not copies:
        return ""
    held = sorted([one["metadata"]["name"], one["type"], sorted(one["data"].items())] for one in copies)
    return hashlib.sha256(json.dumps(held).encode()).hexdigest()[:_LONGEST_VERSION]
