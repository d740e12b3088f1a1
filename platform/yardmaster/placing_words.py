"""What a cluster does with tasks that no failure explains: words of the vocabulary (`failures.REASONS`), each with its
title, its sentence and its remedy. All are the platform's. Only words.
"""

from __future__ import annotations

from collections.abc import Mapping

SCALING_UP = "ScalingUp"
NODE_NOT_READY = "NodeNotReady"
NODE_DRAINED = "NodeDrained"
PLACE_MISSING = "PlaceMissing"

PLACING: Mapping[str, tuple[str, str, str]] = {
    SCALING_UP: (
        "Room is being made",
        "{task} waits for room that the cluster is making.",
        "Wait: the task starts when the machine is there.",
    ),
    NODE_NOT_READY: (
        "Its machine is not ready",
        "{task} runs on a machine that is not ready: it may go on, or be lost.",
        "Nothing to do yet: if the machine does not come back, the cluster starts the task on another one, and it goes "
        "on from the last checkpoint, which costs no retry.",
    ),
    NODE_DRAINED: (
        "Its machine is being emptied",
        "{task} is told to leave its machine, which is being emptied.",
        "Nothing to do: it is started on another machine, and goes on from the last checkpoint, which costs no retry.",
    ),
    PLACE_MISSING: (
        "Its namespace on the cluster lacks something",
        "{task} could not be started: something is missing in the cluster's namespace.",
        "Nothing to do: the portal makes it again, and the cluster then starts the task.",
    ),
}
