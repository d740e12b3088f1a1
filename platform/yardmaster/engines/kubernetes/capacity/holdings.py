"""What is counted of a node and of a pod on it: read once, when one is heard of, and not at each count. Pure.

Not here: how many of them there are (`capacity`), and what they come to (`capacity`).
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from yardmaster.engines.kubernetes.client.objects import Amounts, Raw, asked_by, shared
from yardmaster.engines.kubernetes.render import names
from yardmaster.ids import JobKey


class Held(NamedTuple):
    """What a pod holds of a node."""

    node: str
    asked: Amounts
    is_everywhere: bool
    """Whether every node has one of its kind."""
    namespace: str
    key: JobKey | None
    """The run whose labels it has; None: it has none."""
    role: str


def node_as_counted(found: Raw) -> Raw:
    """What says whom it is for, whether it takes pods, and what it has: without the list of images, most of all."""
    metadata, spec, status = found["metadata"], found.get("spec") or {}, found.get("status") or {}
    conditions = [one for one in status.get("conditions") or () if one["type"] == "Ready"]
    whole = {
        "metadata": {"name": metadata["name"], "labels": metadata.get("labels") or {}},
        "spec": {name: value for name, value in spec.items() if name in ("unschedulable", "taints")},
        "status": {
            "allocatable": status.get("allocatable") or {},
            # Without the times at which it said so last: nothing changes by those.
            "conditions": [{"type": one["type"], "status": one["status"]} for one in conditions],
        },
    }
    read: Raw = shared(whole)
    return read


def held_by(found: Raw) -> Held | None:
    """None: it has ended, or is on no node."""
    metadata, spec = found["metadata"], found["spec"]
    if (found.get("status") or {}).get("phase") in ("Succeeded", "Failed") or not spec.get("nodeName"):
        return None
    labels = metadata.get("labels") or {}
    key = names.key_from_labels(labels) if labels.get(names.MANAGED_BY) == names.US else None
    return Held(
        node=sys.intern(spec["nodeName"]),
        asked=asked_by(found),
        is_everywhere=any(one["kind"] == "DaemonSet" for one in metadata.get("ownerReferences") or ()),
        namespace=sys.intern(metadata.get("namespace", "")),
        key=key,
        role=sys.intern(labels.get(names.ROLE, "")),
    )
