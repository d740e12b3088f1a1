"""The volumes of a namespace on a cluster: the claims that should be there, what is to be done about those that are,
and what their state means. Pure. Not here: doing it (`volume_keeper`)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yardmaster.engines.base import ClaimPhase, VolumeState
from yardmaster.engines.kubernetes.client.objects import Raw, amount_of, is_ending
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.volumes import CLAIM, claim_name, event_words, why_pending
from yardmaster.job.volumes import VolumeKind

VOLUME = "yardmaster/volume"
"""The label of a claim that says what it is for."""
_RESIZE_FAILED = ("VolumeResizeFailed", "FileSystemResizeFailed")


@dataclass(frozen=True)
class Change:
    """What is to be done about one claim. `size` None: it is to go."""

    kind: VolumeKind
    size: int | None
    is_new: bool = False


def claim(namespace_id: uuid.UUID, kind: VolumeKind, size: int, options: TaskOptions) -> dict[str, Any]:
    """The manifest of a new one."""
    labels = {names.MANAGED_BY: names.US, names.NAMESPACE_ID: str(namespace_id), VOLUME: kind.value}
    return {
        "apiVersion": "v1",
        "kind": CLAIM,
        "metadata": {
            "name": claim_name(kind),
            "namespace": names.namespace_name(namespace_id, options),
            "labels": labels,
        },
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": options.volume_class,
            "resources": {"requests": {"storage": str(size)}},
        },
    }


def changes(wanted: Mapping[VolumeKind, int], live: Mapping[VolumeKind, Raw]) -> list[Change]:
    """What is to be done, so that the claims are as `wanted` says (bytes by kind). One is made and enlarged, never made
    smaller: no cluster can. One that goes is waited for."""
    found = []
    for kind in VolumeKind:
        there, size = live.get(kind), wanted.get(kind)
        if there is None:
            if size is not None:
                found.append(Change(kind, size, is_new=True))
        elif is_ending(there):
            continue
        elif size is None:
            found.append(Change(kind, None))
        elif requested(there) < size:
            found.append(Change(kind, size))
    return found


def requested(live: Raw) -> int:
    """Bytes that the claim asks for."""
    return int(amount_of(((live["spec"].get("resources") or {}).get("requests") or {}).get("storage", 0)))


def state_of(live: Raw | None, events: Sequence[Raw]) -> VolumeState:
    """What there is of a volume. `events` are those about its claim, newest first."""
    if live is None:
        return VolumeState(ClaimPhase.ABSENT)
    status = live.get("status") or {}
    size = int(amount_of((status.get("capacity") or {}).get("storage", 0)))
    phase, message = ClaimPhase.PENDING, ""
    if is_ending(live):
        phase, message = ClaimPhase.GOING, "It is removed when the last task that uses it has ended."
    elif status.get("phase") == "Bound":
        phase, message = ClaimPhase.READY, _growth(live, size, events)
    elif status.get("phase") == "Lost":
        phase, message = ClaimPhase.LOST, "The cluster has lost the storage behind it, with its data."
    else:
        message = why_pending(events)
    return VolumeState(phase, size, message, str(live["metadata"].get("uid", "")))


def _growth(live: Raw, size: int, events: Sequence[Raw]) -> str:
    if requested(live) <= size:
        return ""
    failed = next((one for one in events if one.get("reason") in _RESIZE_FAILED), None)
    return f"It cannot be enlarged: {event_words(failed)}" if failed else "It is being enlarged."
