"""The job itself and its history. What an attempt left behind is in `attempt`, what a job holds in `ledger`."""

from __future__ import annotations

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import Strategy
from yardmaster.lifecycle.phases import Phase, Wanted

OF_GROUP = "group:"
"""How the `request_key` of a job begins that is one of a group, such as a sweep: its owner hears of the group."""


class Jobs(models.Manager["Job"]):
    """Jobs, whole; and as lists show them."""

    def for_lists(self) -> models.QuerySet[Job]:
        """Without what is large and what only one job's own page shows. Looked at all the same, each is a query."""
        return self.defer("spec", "waiting", "note")

    def queued(self) -> models.QuerySet[Job]:
        """Every job in the queue, in no order."""
        return self.filter(phase=Phase.QUEUED.value, wanted=Wanted.RUN.value, deleted_at__isnull=True)

    def waiting(self) -> models.QuerySet[Job]:
        """Those that may start: not the ones that are held back, whom all others pass."""
        return self.queued().filter(held_back_until__isnull=True)


class Job(models.Model):
    """One training job and how far its current attempt has come.

    People write `wanted`, the reconciler everything below it. From `strategy` to `reclaim_delay` the columns repeat
    what stands in `spec` (`apps.jobs.state.specs.columns_of`): for filters, the queue's order and lists, which never
    load `spec`: it may have hundreds of kilobytes.
    """

    objects = Jobs()

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.PROTECT, related_name="jobs", db_index=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs", db_index=False)
    name = models.CharField(max_length=200)
    note = models.TextField(blank=True, default="", db_default="")
    """What people want to remember of it."""
    tags = models.JSONField(default=list, blank=True, db_default=[])
    """In order. What is found by them: `JobTag`."""
    archived_at = models.DateTimeField(null=True, blank=True)
    """Since when it is left out of lists, which show it where it is asked for."""
    engine = models.CharField(max_length=63)
    strategy = models.CharField(max_length=32, choices=[(one.value, one.value) for one in Strategy])
    priority = models.IntegerField(default=0)
    priority_class = models.CharField(max_length=63, blank=True, db_default="", default="")
    """The class that gave the priority, which then counts between namespaces in full. Empty: a number was said."""
    needs = models.JSONField()
    """What all its tasks ask for together by resource, its tasks by role, and what each role asks for: the queue is
    read, and jobs are admitted, without their specs."""
    replicas = models.JSONField(default=dict)
    """How many tasks of each role: `{"worker": 2, "ps": 1}`."""
    named_values = models.JSONField(default=dict, blank=True, db_default={})
    """What its arguments and parameters give by name: `yardmaster.job.named_values`."""
    reclaim_delay = models.PositiveIntegerField(default=0)
    """Seconds from success until what never ends by itself is released."""
    spec = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    place = models.GeneratedField(
        expression=models.F("id"),  # type: ignore[arg-type]  # the stubs want an Expression; Django takes an F
        output_field=models.UUIDField(),
        db_persist=True,
    )
    """The id once more, which lists of namespaces are ordered by. Ordered by the primary key, PostgreSQL may walk it
    through all others' newer jobs until it has a page; only indexes beginning with the namespace have this one."""

    wanted = models.CharField(max_length=4, choices=[(one.value, one.value) for one in Wanted], default=Wanted.RUN)
    phase = models.CharField(max_length=9, choices=[(one.value, one.value) for one in Phase], default=Phase.QUEUED)
    attempt = models.PositiveIntegerField(default=1)
    resumes_from = models.PositiveIntegerField(default=1, db_default=1)
    """The first attempt whose checkpoints its tasks may continue from: that which last began from the start."""

    # The one current reason: why it waits, or the verdict.
    reason = models.CharField(max_length=63, blank=True)
    message = models.TextField(blank=True)
    remedy = models.TextField(blank=True)
    waiting = models.JSONField(default=dict, blank=True, encoder=DjangoJSONEncoder)
    """While QUEUED: the numbers behind the reason and the ids of the jobs ahead."""
    position = models.PositiveIntegerField(null=True, blank=True)
    turn_at = models.DateTimeField(null=True, blank=True)
    """Where it was left another job's turn in the queue: that turn's time."""
    place_at = models.DateTimeField(null=True, blank=True)
    """Since when it has its place among the jobs of its namespace, where that is not `queued_at`: before it where it
    was preempted since, after it where it was moved to the end of the queue."""
    waiting_digest = models.CharField(max_length=24, blank=True)
    """Of what is written of its waiting: a pass writes what has changed without reading what stands there."""
    progress = models.JSONField(default=dict, blank=True)
    progress_at = models.DateTimeField(null=True, blank=True)
    steps_per_second = models.FloatField(null=True, blank=True)
    """Of late. None: not known."""

    # The current attempt's times, None until it happened.
    queued_at = models.DateTimeField()
    admitted_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    stop_sent_at = models.DateTimeField(null=True, blank=True)
    preempted_at = models.DateTimeField(null=True, blank=True)
    """Since when it is to give its place to another job, and to go back to the queue."""
    decided_at = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    cleaned_up_at = models.DateTimeField(null=True, blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    """When its engine was first known to have taken it."""

    # What became of it at an engine that did not take it.
    failing_since = models.DateTimeField(null=True, blank=True)
    """Since when every look has failed, in this phase."""
    returns = models.PositiveIntegerField(default=0, db_default=0)
    """How often the current attempt went back to the queue."""
    held_back_until = models.DateTimeField(null=True, blank=True)
    """While QUEUED: not admitted before then, nor before its reconciler has removed what the engine may have of it."""

    refusals = models.PositiveIntegerField(default=0, db_default=0)
    """How often the current attempt was returned to the queue because the engine had no place for all of its tasks."""
    refused_at = models.DateTimeField(null=True, blank=True)
    """When that was last."""
    hindered_since = models.DateTimeField(null=True, blank=True)
    """Since when the one current reason, which its engine gave, is this one."""

    # Who works on it now, and when it must be looked at again.
    lease_owner = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    wake_again = models.BooleanField(default=False)
    """A look was asked for while another worker held the lease: its holder looks once more before it releases it."""
    setbacks = models.PositiveIntegerField(default=0)
    """Failed looks in a row; the next look waits longer after each."""
    next_look_at = models.DateTimeField(null=True, blank=True)
    request_key = models.CharField(max_length=100, null=True, blank=True, unique=True)
    """Which idempotent request made it: repeated after a crash, the request finds this job and makes no second one."""
    watched_until = models.DateTimeField(null=True, blank=True)
    """Until when a TensorBoard shows it, as far as is known now: its tasks send their event files more often."""
    deleted_at = models.DateTimeField(null=True, blank=True)
    """It was deleted: it is not shown any more, and the reconciler removes what it left, then the row."""

    class Meta:
        indexes = [
            # One per filter of the list: a page is read from one end of an index, newest first. Those without the
            # namespace serve administrators, who see all of them.
            models.Index(fields=["namespace", "place"], name="job_list"),
            models.Index(
                fields=["namespace", "place"], name="job_list_current", condition=models.Q(archived_at__isnull=True)
            ),
            models.Index(
                fields=["namespace", "place"], name="job_list_archived", condition=models.Q(archived_at__isnull=False)
            ),
            models.Index(fields=["namespace", "phase", "place"], name="job_list_phase"),
            models.Index(fields=["namespace", "strategy", "place"], name="job_list_strategy"),
            models.Index(fields=["namespace", "owner", "place"], name="job_list_owner"),
            models.Index(
                fields=["namespace", "decided_at"], name="job_decided", condition=models.Q(decided_at__isnull=False)
            ),
            # Which jobs a list shows where no filter is chosen: read whole by lists that are sorted by sums.
            models.Index(
                fields=["namespace", "id"],
                name="job_shown",
                condition=models.Q(archived_at__isnull=True, deleted_at__isnull=True) & ~models.Q(strategy="service"),
            ),
            models.Index(fields=["owner", "id"], name="job_all_owner"),
            models.Index(fields=["phase", "id"], name="job_all_phase"),
            models.Index(fields=["strategy", "id"], name="job_all_strategy"),
            models.Index(fields=["next_look_at"], name="job_due", condition=models.Q(next_look_at__isnull=False)),
            models.Index(
                fields=["engine", "queued_at"], name="job_queue", condition=models.Q(phase=Phase.QUEUED.value)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"

    @property
    def key(self) -> JobKey:
        """What the engine knows the current attempt by."""
        return JobKey(self.namespace_id, self.id, self.attempt)

    @property
    def is_over(self) -> bool:
        """Final and nothing left at the engine: it may be retried or deleted."""
        return Phase(self.phase).is_final and self.cleaned_up_at is not None


class JobInput(models.Model):
    """A version of code or of a dataset that the job reads: one that its current specification names. Who asks whether
    a version is in use reads no specifications."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="inputs", db_index=False)
    version = models.UUIDField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "version"], name="one_row_per_version_of_job")]
        indexes = [models.Index(fields=["version"], name="jobs_of_version")]

    def __str__(self) -> str:
        return f"{self.version} of {self.job_id}"


class JobEvent(models.Model):
    """One thing that happened to a job. Append-only."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="events", db_index=False)
    at = models.DateTimeField()
    attempt = models.PositiveIntegerField()
    kind = models.CharField(max_length=32)
    phase_from = models.CharField(max_length=9, blank=True)
    phase_to = models.CharField(max_length=9, blank=True)
    reason = models.CharField(max_length=63, blank=True)
    message = models.TextField(blank=True)
    facts = models.JSONField(default=dict, blank=True, encoder=DjangoJSONEncoder)

    class Meta:
        indexes = [models.Index(fields=["job", "id"], name="event_of_job")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.job_id} at {self.at:%Y-%m-%d %H:%M:%S}"
