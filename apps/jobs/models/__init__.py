"""What the portal remembers of jobs. A job's phase is assigned in `apps.jobs.state.phase_gate` and nowhere else."""

from apps.jobs.models.attempt import (
    Checkpoint,
    JobAttempt,
    JobOutput,
    OutputUpload,
    ReplacedOutputs,
    ScalarPoint,
    TaskFact,
)
from apps.jobs.models.hold import Cause, Hold
from apps.jobs.models.job import OF_GROUP, Job, JobEvent, JobInput
from apps.jobs.models.label import JobPin, JobTag
from apps.jobs.models.ledger import AdmissionLock, EngineProbe, QueuePass, Reservation
from apps.jobs.models.packages import JobPackages
from apps.jobs.models.publication import Publication, PublicationPart
from apps.jobs.models.shell import TaskShell
from apps.jobs.models.volume import Volume, VolumeCopy, VolumeLeftover

__all__ = [
    "OF_GROUP",
    "AdmissionLock",
    "Cause",
    "Checkpoint",
    "EngineProbe",
    "Hold",
    "Job",
    "JobAttempt",
    "JobEvent",
    "JobInput",
    "JobOutput",
    "JobPackages",
    "JobPin",
    "JobTag",
    "OutputUpload",
    "Publication",
    "PublicationPart",
    "QueuePass",
    "ReplacedOutputs",
    "Reservation",
    "ScalarPoint",
    "TaskFact",
    "TaskShell",
    "Volume",
    "VolumeCopy",
    "VolumeLeftover",
]
