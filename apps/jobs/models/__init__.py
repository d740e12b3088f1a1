"""What the portal remembers of jobs. A job's phase is assigned in `apps.jobs.state.phase_gate` and nowhere else."""

from apps.jobs.models.advance_reservation import AdvanceReservation
from apps.jobs.models.attempt import (
    Checkpoint,
    JobAttempt,
    JobOutput,
    OutputUpload,
    ReplacedOutputs,
    ScalarPoint,
    TaskFact,
)
from apps.jobs.models.engine import EngineNow, EngineSample
from apps.jobs.models.hold import Cause, Hold
from apps.jobs.models.job import OF_GROUP, Job, JobEvent, JobInput
from apps.jobs.models.label import JobPin, JobTag
from apps.jobs.models.ledger import AdmissionLock, EngineProbe, QueuePass, Reservation
from apps.jobs.models.machine import HostMachine
from apps.jobs.models.metric import JobColumns, JobMetric
from apps.jobs.models.packages import JobPackages
from apps.jobs.models.preemption import Preemption, PreemptionPolicy
from apps.jobs.models.preset import LaunchPreset
from apps.jobs.models.publication import Publication, PublicationPart
from apps.jobs.models.retention import JobCleared, RetentionRule, jobs_in_use
from apps.jobs.models.shell import TaskShell
from apps.jobs.models.volume import Volume, VolumeCopy, VolumeLeftover
from apps.jobs.models.wait_estimate import WaitEstimate

__all__ = [
    "OF_GROUP",
    "AdmissionLock",
    "AdvanceReservation",
    "Cause",
    "Checkpoint",
    "EngineNow",
    "EngineProbe",
    "EngineSample",
    "Hold",
    "HostMachine",
    "Job",
    "JobAttempt",
    "JobCleared",
    "JobColumns",
    "JobEvent",
    "JobInput",
    "JobMetric",
    "JobOutput",
    "JobPackages",
    "JobPin",
    "JobTag",
    "LaunchPreset",
    "OutputUpload",
    "Preemption",
    "PreemptionPolicy",
    "Publication",
    "PublicationPart",
    "QueuePass",
    "ReplacedOutputs",
    "Reservation",
    "RetentionRule",
    "ScalarPoint",
    "TaskFact",
    "TaskShell",
    "Volume",
    "VolumeCopy",
    "VolumeLeftover",
    "WaitEstimate",
    "jobs_in_use",
]
