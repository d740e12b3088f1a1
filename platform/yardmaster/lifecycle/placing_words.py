"""What a cluster does with tasks that no failure explains: words of the vocabulary (`failures.REASONS`), each with its
title, its sentence and its remedy. All are the platform's. Only words.
"""

from __future__ import annotations

from collections.abc import Mapping

SCALING_UP = "ScalingUp"
NODE_NOT_READY = "NodeNotReady"
NODE_DRAINED = "NodeDrained"
NAMESPACE_INCOMPLETE = "NamespaceIncomplete"
VOLUME_PENDING = "VolumePending"

PLACING: Mapping[str, tuple[str, str, str]] = {
    SCALING_UP: (
        "Waiting for cluster capacity",
        "{task} waits for capacity that the cluster is adding.",
        "Nothing to do: the task starts when the machine is ready.",
    ),
    NODE_NOT_READY: (
        "Its machine is not ready",
        "{task} runs on a machine that is not ready. The task may continue or be lost.",
        "Nothing to do yet. If the machine does not recover, the cluster starts the task on another one, and it "
        "resumes from the last checkpoint, without using a restart.",
    ),
    NODE_DRAINED: (
        "Its machine is being drained",
        "{task} is being evicted: its machine is drained.",
        "Nothing to do: it restarts on another machine, and resumes from the last checkpoint, without using a restart.",
    ),
    NAMESPACE_INCOMPLETE: (
        "Objects are missing in its cluster namespace",
        "{task} could not be started: something is missing in the cluster's namespace.",
        "Nothing to do: the portal creates it again, and the cluster then starts the task.",
    ),
    VOLUME_PENDING: (
        "A volume of the namespace is not ready",
        "{task} waits for a volume of its namespace.",
        "The namespace's page shows the volume. Ask an administrator to check the storage class of the cluster.",
    ),
    "InputNotOnVolume": (
        "An input is not on the data volume",
        "{task} could not start: an input is not on the namespace's data volume ({said}).",
        "Publish the version to the volume again, or relaunch with source store.",
    ),
    "MachineDiskFull": (
        "Its machine's disk was full",
        "{task} was evicted because the disk of its machine was full.",
        "Relaunch; it resumes from the last checkpoint. If it repeats, ask an administrator to free space there.",
    ),
    "Unschedulable": (
        "No machine fits the task",
        "{task} found no machine with enough free capacity.",
        "Request smaller tasks, or wait for other jobs to end.",
    ),
}
