"""The JSON of what lies below a job: why, history, tasks, curves, results; and of engines."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.jobs.api.serializers import PHASES, QUEUE_STATES, ROLES, ShortageSerializer
from apps.jobs.models import Checkpoint, JobAttempt, JobEvent


class JobNameSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()


class HolderSerializer(JobNameSerializer):
    resources = serializers.DictField(child=serializers.FloatField())


class FailedTaskSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=ROLES)
    index = serializers.IntegerField()
    exit_code = serializers.IntegerField(allow_null=True)


class ExplanationSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="Names the failure, stable: `missing_module`, `legacy_optimizer`, …")
    reason = serializers.CharField()
    message = serializers.CharField()
    remedy = serializers.CharField()
    environment = serializers.DictField(
        child=serializers.CharField(),
        help_text="Variables with which the job would not have failed: add them to `environment` of the `spec` of a "
        "retry. Empty where no change of the job is known to help.",
    )


class EstimateSerializer(serializers.Serializer[Any]):
    """When a job that waits will probably start. At least four of five such ranges are meant to hold."""

    starts_from = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True, help_text="Null: no end can be said.")
    words = serializers.CharField(help_text="As people read it, from now: `in 5 to 20 minutes`.")


class WhySerializer(serializers.Serializer[Any]):
    """Why a job is where it is. What you may not see is counted, not named."""

    phase = serializers.ChoiceField(choices=PHASES)
    reason = serializers.CharField()
    message = serializers.CharField()
    remedy = serializers.CharField()
    queue_state = serializers.ChoiceField(
        choices=QUEUE_STATES, allow_null=True, help_text="Of a queued job: whether it waits, or can never start."
    )
    position = serializers.IntegerField(allow_null=True)
    estimate = EstimateSerializer(
        allow_null=True, help_text="Null where it does not wait, or too few jobs have ended to tell."
    )
    numbers = ShortageSerializer(many=True)
    ahead = JobNameSerializer(many=True)
    ahead_hidden = serializers.IntegerField()
    holders = HolderSerializer(many=True)
    holders_hidden = serializers.IntegerField()
    blame = serializers.ChoiceField(choices=["", "user", "platform", "limit"])
    task = FailedTaskSerializer(allow_null=True, help_text="The task that failed first.")
    last_lines = serializers.ListField(child=serializers.CharField(), help_text="The end of that task's log.")
    explanation = ExplanationSerializer(
        allow_null=True, help_text="An explanation of those lines, if they are recognised."
    )


class AttemptSerializer(serializers.ModelSerializer[JobAttempt]):
    """How one attempt ended; `phase` is empty while it is under way."""

    role = serializers.CharField(read_only=True, help_text="Of the task that decided the result; empty if none did.")

    class Meta:
        model = JobAttempt
        fields = [
            "number", "phase", "reason", "message", "remedy", "blame", "role", "index", "exit_code", "queued_at",
            "started_at", "decided_at", "cleaned_up_at",
        ]  # fmt: skip
        read_only_fields = fields


class EventSerializer(serializers.ModelSerializer[JobEvent]):
    """One thing that happened."""

    facts = serializers.DictField()

    class Meta:
        model = JobEvent
        fields = ["id", "at", "attempt", "kind", "phase_from", "phase_to", "reason", "message", "facts"]
        read_only_fields = fields


class EventsSerializer(serializers.Serializer[Any]):
    """Oldest first; `next` is the `after` of the next page, null at the end."""

    results = EventSerializer(many=True)
    next = serializers.IntegerField(allow_null=True)


class TaskSerializer(serializers.Serializer[Any]):
    """One task of the asked attempt: what its engine saw, and what its runner said of itself."""

    role = serializers.ChoiceField(choices=ROLES)
    index = serializers.IntegerField()
    phase = serializers.CharField(help_text="PENDING until the engine reports it.")
    state = serializers.CharField(
        help_text="What the runner does: staging, running, held, uploading, ended; empty: unknown."
    )
    reason = serializers.CharField()
    message = serializers.CharField()
    exit_code = serializers.IntegerField(allow_null=True)
    restarts = serializers.IntegerField()
    node = serializers.CharField()
    progress = serializers.DictField(child=serializers.FloatField(), allow_null=True)
    usage = serializers.DictField(child=serializers.FloatField(), allow_null=True)
    peak_memory = serializers.IntegerField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    reported_at = serializers.DateTimeField(allow_null=True)
    held_until = serializers.DateTimeField(
        allow_null=True,
        help_text="Its script has failed, and it stays up until then, so that users can open a terminal in it.",
    )
    stalled_since = serializers.DateTimeField(
        allow_null=True, help_text="Since when its script makes no progress, prints nothing and uses no processor time."
    )
    waits_for = serializers.CharField(help_text="The task that a stalled one says it waits for, such as `ps-0`.")


class TasksSerializer(serializers.Serializer[Any]):
    attempt = serializers.IntegerField()
    results = TaskSerializer(many=True)


class AttemptChoiceSerializer(serializers.Serializer[Any]):
    attempt = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Default: the current."
    )


class PackageSerializer(serializers.Serializer[Any]):
    """A distribution that pip installed."""

    name = serializers.CharField()
    version = serializers.CharField()
    sha256 = serializers.CharField(help_text="Of its wheel. May be empty.")


class PackagesSerializer(serializers.Serializer[Any]):
    attempt = serializers.IntegerField()
    results = PackageSerializer(many=True)


class EventsQuerySerializer(serializers.Serializer[Any]):
    after = serializers.IntegerField(required=False, default=0, min_value=0, max_value=2**63 - 1)


class ScalarsQuerySerializer(AttemptChoiceSerializer):
    run = serializers.CharField(required=False, max_length=200)
    tag = serializers.CharField(required=False, max_length=200)
    points = serializers.IntegerField(required=False, default=500, min_value=10, max_value=4000)


class CurveSerializer(serializers.Serializer[Any]):
    """One curve; `points` are [step, unix time, value], the value null where it was no finite number."""

    run = serializers.CharField()
    tag = serializers.CharField()
    points = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(allow_null=True)), source="triples"
    )
    not_finite = serializers.DictField(
        child=serializers.CharField(),
        help_text="By step, what the points without a value are: nan, inf, -inf, or unknown.",
    )


class CurvesSerializer(serializers.Serializer[Any]):
    attempt = serializers.IntegerField()
    attempts = serializers.IntegerField(help_text="How many attempts the job has had; each has its own curves.")
    results = CurveSerializer(many=True)


class CheckpointSerializer(serializers.ModelSerializer[Checkpoint]):
    class Meta:
        model = Checkpoint
        fields = ["id", "attempt", "step", "size", "completed_at"]
        read_only_fields = fields


class ManifestsSerializer(serializers.Serializer[Any]):
    """What the engine would create, or has created, as data."""

    engine = serializers.CharField()
    manifests = serializers.ListField(child=serializers.DictField(), source="objects")


class ResourcesSerializer(serializers.Serializer[Any]):
    cpu = serializers.FloatField()
    memory = serializers.IntegerField()
    gpus = serializers.IntegerField()
    extended = serializers.DictField(child=serializers.IntegerField())


class ShareByNameSerializer(serializers.Serializer[Any]):
    """Of a resource known by its name: pieces."""

    hard = serializers.IntegerField(allow_null=True, help_text="Null: unlimited.")
    used = serializers.IntegerField()


class DeviceQuotaSerializer(ShareByNameSerializer):
    """What one namespace may hold of a device on all engines together, and holds."""

    namespace = serializers.CharField(help_text="Its slug.")


class DeviceSerializer(serializers.Serializer[Any]):
    """A device that the operator named."""

    name = serializers.CharField(help_text="As jobs and quotas name it, among the extended resources.")
    label = serializers.CharField()  # type: ignore[assignment]  # the name is the field of the answer
    total = serializers.IntegerField()
    free = serializers.IntegerField(help_text="Not used by other workloads or by the portal's own jobs.")
    held = serializers.IntegerField(help_text="Used by the portal's own jobs.")
    quotas = DeviceQuotaSerializer(
        many=True,
        help_text="Of the namespaces in which you may launch, those that hold the most first, at most 20. For "
        "administrators: of their own, and of others that hold some. Empty where you may not launch on the engine.",
    )


class EngineSerializer(serializers.Serializer[Any]):
    """An engine, and whether you may launch on it."""

    name = serializers.CharField()
    is_default = serializers.BooleanField()
    allowed = serializers.BooleanField()
    message = serializers.CharField(
        help_text="Why not, why its capacity is unknown, or why its tasks would wait for the portal in vain."
    )
    remedy = serializers.CharField()
    tasks_reach_portal = serializers.BooleanField(
        allow_null=True,
        help_text="Tested from where tasks run. Null: not tested, or unknown. Jobs wait while it is false.",
    )
    network_enforced = serializers.BooleanField(
        allow_null=True,
        help_text="Whether the network keeps tasks of different jobs apart, as it was tried. Null: not tried, not "
        "known, or you are no administrator.",
    )
    total = ResourcesSerializer(allow_null=True)
    free = ResourcesSerializer(allow_null=True, help_text="Not used by other workloads or by the portal's own jobs.")
    largest_task = ResourcesSerializer(allow_null=True)
    devices = DeviceSerializer(many=True)


class EnginesSerializer(serializers.Serializer[Any]):
    results = EngineSerializer(many=True)
