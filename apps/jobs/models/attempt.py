"""What one attempt of a job was and left behind: its verdict, its tasks, its curves, its checkpoints."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from yardmaster.ids import new_id
from yardmaster.job.spec import Role

ROLES = [(one.value, one.value) for one in Role]


class JobAttempt(models.Model):
    """One attempt, kept when the next one begins. The times of the current one are in `Job`."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="attempts", db_index=False)
    number = models.PositiveIntegerField()
    begun_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """Who launched or retried the job. None: of an attempt before this was kept, or of a deleted user."""
    spec = models.JSONField()
    phase = models.CharField(max_length=9, blank=True)
    """Empty until the attempt is decided."""
    reason = models.CharField(max_length=63, blank=True)
    message = models.TextField(blank=True)
    remedy = models.TextField(blank=True)
    blame = models.CharField(max_length=16, blank=True)
    role = models.CharField(max_length=16, blank=True, choices=ROLES)
    index = models.PositiveIntegerField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    queued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    cleaned_up_at = models.DateTimeField(null=True, blank=True)
    log_bytes = models.BigIntegerField(default=0)
    """What the namespace is charged for what its tasks printed; in portions while they print."""

    agreed = models.JSONField(null=True, blank=True, default=dict)
    """What its tasks have agreed on: a text by its name. None: of an attempt before tasks could, which never do."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="one_row_per_attempt")]
        # For the dashboards, which count over all jobs without reading the rows, which are large.
        indexes = [
            models.Index(
                fields=["decided_at", "reason", "job"], name="attempt_failed", condition=models.Q(phase="FAILED")
            ),
            models.Index(
                fields=["queued_at", "started_at", "job"],
                name="attempt_started",
                condition=models.Q(started_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.job_id}"


class TaskFact(models.Model):
    """The latest that is known of one task: what its engine saw, and what its runner said of itself."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="task_facts", db_index=False)
    attempt = models.PositiveIntegerField()
    role = models.CharField(max_length=16, choices=ROLES)
    index = models.PositiveIntegerField()

    # Seen by the engine.
    phase = models.CharField(max_length=9, blank=True)
    reason = models.CharField(max_length=63, blank=True)
    message = models.TextField(blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    restarts = models.PositiveIntegerField(default=0)
    node = models.CharField(max_length=253, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    peak_memory = models.BigIntegerField(null=True, blank=True)

    # Said by the runner.
    state = models.CharField(max_length=16, blank=True)
    progress = models.JSONField(default=dict, blank=True)
    usage = models.JSONField(default=dict, blank=True)
    usage_samples = models.JSONField(default=list, blank=True)
    """Its use over time: `[[unix time, cpu seconds, memory], …]`, as many as `yardmaster.usage` keeps."""
    reported = models.JSONField(default=dict, blank=True)
    """The runner's own `restart`, `exit_code`, `reason` and `message`."""
    unsaved = models.JSONField(default=dict, blank=True)
    """Why `outputs` or the `model` are not saved, in words."""
    points_since_thinning = models.PositiveIntegerField(default=0)
    """Points of curves that it sent since its attempt's curves were last thinned."""
    reported_at = models.DateTimeField(null=True, blank=True)
    release_of = models.PositiveIntegerField(null=True, blank=True)
    """Which start of it (the runner's `restart`) a user has released, where that is held open after its failure."""
    stacks_asked = models.PositiveIntegerField(default=0)
    """How often users have asked for the stacks of its threads."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "attempt", "role", "index"], name="one_fact_per_task")]

    def __str__(self) -> str:
        return f"{self.role}-{self.index} of {self.job_id}, attempt {self.attempt}"


class ScalarPoint(models.Model):
    """One value of one curve. The same run, tag and step twice is one point: a repeated report changes nothing."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="scalars", db_index=False)
    attempt = models.PositiveIntegerField()
    run = models.CharField(max_length=200, blank=True)
    tag = models.CharField(max_length=200)
    step = models.BigIntegerField()
    time = models.FloatField()
    """Unix time at which the script wrote it."""
    value = models.FloatField(null=True)
    """None: not a number, or infinite."""
    not_finite = models.CharField(max_length=4, blank=True, default="", db_default="")
    """`nan`, `inf` or `-inf`; empty: a number, or not said."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "attempt", "run", "tag", "step"], name="one_point_per_step")
        ]

    def __str__(self) -> str:
        return f"{self.tag}@{self.step}={self.value}"


class Checkpoint(models.Model):
    """A checkpoint that a task has uploaded, or is uploading while `completed_at` is empty."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="checkpoints", db_index=False)
    attempt = models.PositiveIntegerField()
    step = models.BigIntegerField()
    upload_id = models.UUIDField(unique=True)
    size = models.BigIntegerField()
    files = models.JSONField(default=list)
    """`[{"path", "size", "sha256", "key"}]`, filled in when complete."""
    created_at = models.DateTimeField(auto_now_add=True)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["job", "completed_at"], name="checkpoints_of_job")]

    def __str__(self) -> str:
        return f"step {self.step} of {self.job_id}, attempt {self.attempt}"


class JobOutput(models.Model):
    """A file that a task wrote below its log directory, as far as the portal has all of it."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="outputs", db_index=False)
    attempt = models.PositiveIntegerField()
    name = models.CharField(max_length=600)
    """Its path; of a task with a log directory of its own the task's name is in front (`worker-1/…`)."""
    task = models.CharField(max_length=32, blank=True)
    """`worker-1`; empty where all tasks share their log directory."""
    size = models.BigIntegerField()
    has_events = models.BooleanField()
    """It is an event file for TensorBoard."""
    segments = models.JSONField()
    """`[{"start", "size", "key", "upload", "path"}]`, in their order and without gaps: where its bytes lie."""
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "attempt", "name"], name="one_output_per_name")]

    def __str__(self) -> str:
        return f"{self.name} of {self.job_id}, attempt {self.attempt}"


class OutputUpload(models.Model):
    """Outputs that a task is uploading. Gone once they are all there, or given up."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="+")
    attempt = models.PositiveIntegerField()
    task = models.CharField(max_length=32, blank=True)
    upload_id = models.UUIDField(unique=True)
    starts = models.JSONField(default=dict)
    """By path: the byte of the file with which the upload begins, where that is not the first."""

    def __str__(self) -> str:
        return f"outputs of {self.job_id}, attempt {self.attempt}"


class ReplacedOutputs(models.Model):
    """Files of an upload in whose place newer ones have come, to be removed when no address can write them any more."""

    upload_id = models.UUIDField(primary_key=True)
    paths = models.JSONField(default=list)
    due_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"replaced files of {self.upload_id}"
