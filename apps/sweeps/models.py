"""Sweeps and their trials: a job specification, what is tried with it, and what each trial came to.

A trial's row is there before its job, so that a launch that was interrupted is found again. Not here: what is decided
(`yardmaster.sweeps`).
"""

from __future__ import annotations

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from apps.jobs.models import OF_GROUP
from yardmaster.ids import new_id
from yardmaster.sweeps.decision import SweepState, TrialState


class Sweep(models.Model):
    """One job many times with other values."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey(
        "namespaces.Namespace", on_delete=models.CASCADE, related_name="sweeps", db_index=False
    )
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    """Whose jobs its trials are, with the rights that they have at each launch. None: removed."""
    name = models.CharField(max_length=200)
    engine = models.CharField(max_length=63)
    base = models.JSONField(encoder=DjangoJSONEncoder)
    """The specification of every trial but for its values, as it was sent."""
    plan = models.JSONField()
    """What `yardmaster.sweeps.plan` reads."""
    count = models.PositiveIntegerField()
    """Of its trials."""
    accept_never_fits = models.BooleanField(default=False)
    state = models.CharField(
        max_length=10, choices=[(one.value, one.value) for one in SweepState], default=SweepState.RUNNING
    )
    reason = models.CharField(max_length=500, blank=True)
    """Why it is paused, or has ended before all trials were tried."""
    waiting = models.CharField(max_length=500, blank=True)
    """Why the next trial could not be launched yet."""
    request_key = models.CharField(max_length=100, null=True, blank=True, unique=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    failures_from = models.DateTimeField()
    """Trials that have failed before then count no more: it was resumed since."""
    next_look_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["namespace", "id"], name="sweeps_of_namespace"),
            models.Index(fields=["next_look_at"], name="sweeps_due", condition=models.Q(next_look_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"

    @property
    def is_ended(self) -> bool:
        return self.state == SweepState.ENDED.value


class SweepTrial(models.Model):
    """One of its jobs, or one that is still to be launched; with what its metric came to, which outlives the job."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    sweep = models.ForeignKey(Sweep, on_delete=models.CASCADE, related_name="trials", db_index=False)
    number = models.PositiveIntegerField()
    """From 1."""
    values = models.JSONField()
    job = models.ForeignKey("jobs.Job", null=True, on_delete=models.SET_NULL, related_name="+")
    state = models.CharField(
        max_length=13, choices=[(one.value, one.value) for one in TrialState], default=TrialState.WAITING
    )
    stop_reason = models.CharField(max_length=300, blank=True)
    """Why it was stopped early; empty: it was not."""
    launching_at = models.DateTimeField(null=True, blank=True)
    """When its job was first asked for: there may be one although `job` is none."""
    launched_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    # Of the job's current attempt, and of those that it resumes from.
    attempt = models.PositiveIntegerField(default=0)
    run = models.CharField(max_length=200, blank=True)
    steps = models.BigIntegerField(null=True, blank=True)
    """How far its metric is."""
    value = models.FloatField(null=True, blank=True)
    """The newest that is finite."""
    best = models.FloatField(null=True, blank=True)
    best_step = models.BigIntegerField(null=True, blank=True)
    curve = models.JSONField(default=list, blank=True)
    """`[[step, value or null], …]`, thinned."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sweep", "number"], name="one_trial_per_number")]

    def __str__(self) -> str:
        return f"trial {self.number} of {self.sweep_id}"

    @property
    def request_key(self) -> str:
        """By which its job is found again: asked for twice, there is one."""
        return f"{OF_GROUP}sweep:{self.pk}"
