"""What a node says of its disk when it takes a pod away: that the pod wrote more than it may, or that the disk is full,
whoever filled it. Pure; the words are those of the kubelet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NODE_SAYS = frozenset({"Evicted", "Preempting", "Terminated", "NodeShutdown", "NodeLost", "Shutdown"})
"""Reasons of a pod's status by which its node says that it ended the pod."""
TOO_MUCH_WRITTEN = re.compile(
    r"ephemeral local storage usage exceeds|exceeded its local ephemeral storage limit|Usage of EmptyDir volume"
)
"""The kubelet's words (`pkg/kubelet/eviction/helpers.go`) where a pod has passed its own limits of disk."""
IS_FULL = re.compile(r"low on resource: (?:ephemeral-storage|inodes)|had condition: \[[^]]*DiskPressure")
"""The same where the node's disk is full, whoever filled it."""


def has_written_too_much(pod: Mapping[str, Any]) -> bool:
    """Whether its node evicted it because it wrote more to the disk than it may."""
    status = pod.get("status", {})
    return status.get("reason") in NODE_SAYS and bool(TOO_MUCH_WRITTEN.search(status.get("message") or ""))
