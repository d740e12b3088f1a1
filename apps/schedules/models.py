"""Job templates with their revisions, schedules that launch from them, and which job came from which.

Not here: what is valid (`yardmaster.job.template_parameters`), and when a schedule is due (`yardmaster.schedules`).
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.jobs.models import Job
from apps.namespaces.models import Namespace
from yardmaster.ids import new_id
from yardmaster.schedules.due import Overlap

FROM_TEMPLATE, FROM_SCHEDULE = "template:", "schedule:"
"""How the `request_key` of a job begins that was launched from one."""


class JobTemplate(models.Model):
    """A launch request of a namespace, with parameters. What it says is in its revisions."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="job_templates", db_index=False)
    name = models.CharField(max_length=100)
    description = models.CharField(max_length=500, blank=True)
    revision = models.PositiveIntegerField(default=1)
    """The newest one, which is launched."""
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "name"], name="one_template_per_name")]

    def __str__(self) -> str:
        return self.name


class TemplateRevision(models.Model):
    """What a template says, or said. Never changed."""

    template = models.ForeignKey(JobTemplate, on_delete=models.CASCADE, related_name="revisions", db_index=False)
    number = models.PositiveIntegerField()
    spec = models.JSONField()
    """The job's specification as JSON, with `{{name}}` where parameters go."""
    engine = models.CharField(max_length=63, blank=True)
    """Empty: the default engine of the moment."""
    latest = models.JSONField(default=dict)
    """What is taken in its latest version: `{"code": id of the code, "inputs.0": id of the dataset or model}`."""
    named = models.JSONField(default=dict)
    """What its code and inputs were called when it was saved, by the same keys: said where one is gone."""
    parameters = models.JSONField(default=list)
    at = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["template", "number"], name="one_revision_per_number")]

    def __str__(self) -> str:
        return f"revision {self.number} of {self.template_id}"


class Schedule(models.Model):
    """Times at which a template is launched, for its owner and with that user's rights."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="schedules", db_index=False)
    template = models.ForeignKey(JobTemplate, on_delete=models.CASCADE, related_name="schedules")
    name = models.CharField(max_length=100)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="schedules")
    values = models.JSONField(default=dict)
    """Of the template's parameters; what is not named has its default."""
    cron = models.CharField(max_length=100)
    time_zone = models.CharField(max_length=64)
    starts_at = models.DateTimeField(null=True, blank=True)
    ends_at = models.DateTimeField(null=True, blank=True)
    overlap = models.CharField(
        max_length=5, choices=[(one.value, one.value) for one in Overlap], default=Overlap.SKIP.value
    )
    grace = models.PositiveIntegerField(default=3600)
    """Seconds after its time in which a run that was missed is still launched."""
    keeps = models.PositiveIntegerField(default=0)
    """How many ended jobs of it are kept; older ones are deleted. 0: all."""
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    next_at = models.DateTimeField(null=True, blank=True)
    """The first time that was not decided yet; None: there is none, or it is paused."""
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_code = models.CharField(max_length=32, blank=True)
    """Empty: a person paused it."""
    pause_reason = models.CharField(max_length=500, blank=True)
    refusals = models.PositiveIntegerField(default=0)
    """Refused launches in a row."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "name"], name="one_schedule_per_name")]
        indexes = [
            models.Index(fields=["next_at"], name="schedules_due", condition=models.Q(next_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name


class RunState(models.TextChoices):
    """What became of one time of a schedule."""

    WAITING = "waiting"
    LAUNCHED = "launched"
    REFUSED = "refused"
    SKIPPED = "skipped"
    MISSED = "missed"


class ScheduleRun(models.Model):
    """One time of a schedule, once."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="runs", db_index=False)
    planned_at = models.DateTimeField()
    is_asked_for = models.BooleanField(default=False)
    """A person asked for it now."""
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    state = models.CharField(max_length=8, choices=RunState, default=RunState.WAITING)
    decided_at = models.DateTimeField(null=True, blank=True)
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="+")
    code = models.CharField(max_length=64, blank=True)
    message = models.CharField(max_length=1000, blank=True)
    look_at = models.DateTimeField(null=True, blank=True)
    """While it waits: when it is worked on next; moved on while a worker has it."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["schedule", "planned_at"], name="one_run_per_time")]
        indexes = [
            models.Index(fields=["look_at"], name="schedule_runs_due", condition=models.Q(look_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.planned_at}"


class TemplateJob(models.Model):
    """Which template, and which schedule, a job came from. Stays when either is removed."""

    job = models.OneToOneField(Job, primary_key=True, on_delete=models.CASCADE, related_name="from_template")
    template = models.ForeignKey(JobTemplate, null=True, on_delete=models.SET_NULL, related_name="jobs")
    template_name = models.CharField(max_length=100)
    revision = models.PositiveIntegerField()
    values = models.JSONField(default=dict)
    schedule = models.ForeignKey(Schedule, null=True, on_delete=models.SET_NULL, related_name="jobs")

    def __str__(self) -> str:
        return f"{self.job_id} from {self.template_name}"
