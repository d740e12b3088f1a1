"""What a pod has of its namespace's volumes: the claims, a mount for each folder of them that its job needs, and the
variables by which the runner learns where they are; and what the cluster says of a claim without a volume. Pure; which
folders these are is `yardmaster.job.volumes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yardmaster.job.programs import VOLUME_COPY
from yardmaster.job.spec import LogDir, TrainingSpec
from yardmaster.job.volumes import ROOTS, Mount, VolumeKind

CLAIM = "PersistentVolumeClaim"
OF_CLAIMS = f"involvedObject.kind={CLAIM}"
"""The field selector of the events about claims."""
_WAITS_FOR_TASK = "WaitForFirstConsumer"
_LONGEST = 500
INCOMING = "incoming"
"""Beside a version's files on the volume: where those are fetched to that are not yet in their place."""


def claim_name(kind: VolumeKind) -> str:
    """The PersistentVolumeClaim of this volume, in the namespace that it belongs to."""
    return kind.value


def claim_volumes(mounts: Sequence[Mount]) -> list[dict[str, Any]]:
    """The pod's volumes: one per claim, whatever it needs of it."""
    kinds = sorted({one.kind for one in mounts})
    return [{"name": _name(kind), "persistentVolumeClaim": {"claimName": claim_name(kind)}} for kind in kinds]


def claim_mounts(mounts: Sequence[Mount]) -> list[dict[str, Any]]:
    """The container's mounts. The kubelet makes a folder that is not there yet, and follows no link in its path."""
    return [
        {
            "name": _name(one.kind),
            "mountPath": one.path,
            "subPath": one.folder,
            **({"readOnly": True} if one.read_only else {}),
        }
        for one in mounts
    ]


def volume_variables(spec: TrainingSpec, mounts: Sequence[Mount]) -> dict[str, str]:
    """What the runner reads (`yardmaster_runner.settings`)."""
    found = {}
    if any(one.kind is VolumeKind.DATA for one in mounts):
        found["YARDMASTER_DATA_VOLUME"] = ROOTS[VolumeKind.DATA]
    if spec.log_dir is LogDir.VOLUME:
        found["YARDMASTER_LOG_DIR"] = ROOTS[VolumeKind.LOG]
    elif any(one.kind is VolumeKind.LOG for one in mounts):
        found["YARDMASTER_LOG_VOLUME"] = ROOTS[VolumeKind.LOG]
    if spec.program == VOLUME_COPY:
        found["YARDMASTER_CACHE_DIR"] = f"{mounts[0].path}/{INCOMING}"
    return found


def _name(kind: VolumeKind) -> str:
    return f"volume-{kind.value}"


# --- what the cluster says of a claim --------------------------------------------------------------------------------


def is_of_claim(event: Mapping[str, Any]) -> bool:
    return bool((event.get("involvedObject") or {}).get("kind") == CLAIM)


def why_pending(events: Sequence[Mapping[str, Any]]) -> str:
    """Why a claim has no volume yet, from the events about it, newest first."""
    warning = next((one for one in events if one.get("type") == "Warning"), None)
    if warning is not None:
        return event_words(warning)
    if any(one.get("reason") == _WAITS_FOR_TASK for one in events):
        return "It is created when the first task uses it."
    return event_words(events[0]) if events else "The cluster does not say why."


def event_words(event: Mapping[str, Any]) -> str:
    """What an event says, for people."""
    return f"{event.get('reason', '')}: {event.get('message', '')}".strip(": ")[:_LONGEST]
