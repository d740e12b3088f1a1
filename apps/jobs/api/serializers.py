"""The JSON of jobs. What makes a specification valid is said by `yardmaster.job.spec_json`, not here."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.serializers import StrictSerializer
from apps.jobs.explanations.waiting_words import NEVER, WAITING, queue_state
from apps.jobs.labels import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS
from apps.jobs.models import Job
from apps.jobs.published import published_by
from apps.jobs.state.specs import images_shown, spec_or_remains
from yardmaster.job.spec import Role, Strategy
from yardmaster.job.spec_stored import sent_form
from yardmaster.lifecycle.phases import Phase, Wanted

PHASES = [(one.value, one.value) for one in Phase]
ROLES = [(one.value, one.value) for one in Role]
STRATEGIES = [(one.value, one.value) for one in Strategy]
_SPEC = {
    "type": "object",
    "description": "A job specification, version 1. Unknown keys are refused by name.",
    "required": ["name", "strategy", "roles"],
    "properties": {
        "version": {"type": "integer", "enum": [1]},
        "name": {"type": "string"},
        "strategy": {"type": "string", "enum": [one.value for one in Strategy]},
        "roles": {"type": "object", "additionalProperties": {"type": "object"}},
        "code": {
            "type": ["string", "null"],
            "format": "uuid",
            "description": "Required, except for in_graph, which runs no script.",
        },
        "entry_point": {
            "type": "string",
            "description": "A script, a notebook (.ipynb) or a module (-m package.train). Same rules as `code`.",
        },
        "command": {"type": "string", "description": "A shell command, in the place of entry_point and arguments."},
        "parameters": {"type": "object", "description": "Variables of a notebook.", "additionalProperties": True},
        "tf1": {"type": "boolean", "description": "`import tensorflow` gives tensorflow.compat.v1."},
    },
    "additionalProperties": True,
}


@extend_schema_field(_SPEC)
class SpecField(serializers.JSONField):
    """Any JSON here: the core reads it and names every problem. Given back as it can be sent again."""

    def to_representation(self, value: Any) -> Any:
        return sent_form(value) if isinstance(value, dict) else value


_ACCEPT = "Queue the job even if it can never start as things are. Default: it is refused with 409 `never_fits`."
QUEUE_STATES = [(WAITING, WAITING), (NEVER, NEVER)]


class JobRequestSerializer(StrictSerializer):
    """A job to launch or to check. Without `namespace`: in your own; without `engine`: on the default one."""

    namespace = serializers.CharField(required=False, max_length=63)
    engine = serializers.CharField(required=False, max_length=63)
    spec = SpecField()


def confirm_foreign_model_field() -> serializers.BooleanField:
    """Of every request that may launch a job with a model (`apps.jobs.foreign`)."""
    what = "Run a model that others had a part in on an engine that isolates no one."
    return serializers.BooleanField(required=False, default=False, help_text=what)


class LaunchSerializer(JobRequestSerializer):
    """A job to launch."""

    accept_never_fits = serializers.BooleanField(required=False, default=False, help_text=_ACCEPT)
    confirm_foreign_model = confirm_foreign_model_field()


class RetrySerializer(StrictSerializer):
    """A new attempt. Without `spec`: with the same one."""

    spec = SpecField(required=False)
    resume = serializers.BooleanField(
        required=False, allow_null=True, default=None,
        help_text="Whether it continues from the newest checkpoint. Default: yes, unless the job has succeeded.",
    )  # fmt: skip
    accept_never_fits = serializers.BooleanField(required=False, default=False, help_text=_ACCEPT)
    confirm_foreign_model = confirm_foreign_model_field()


class JobChangeSerializer(StrictSerializer):
    """What people write on a job. What is left out stays."""

    name = serializers.CharField(required=False, max_length=200)
    note = serializers.CharField(required=False, allow_blank=True, max_length=LONGEST_NOTE)
    tags = serializers.ListField(
        child=serializers.CharField(max_length=LONGEST_TAG), required=False, max_length=MOST_TAGS,
        help_text="All tags of the job, in the place of those that it has.",
    )  # fmt: skip
    archived = serializers.BooleanField(
        required=False, help_text="Leave it out of lists. Only of a job that has ended."
    )


class JobRowSerializer(serializers.ModelSerializer[Job]):
    """A job of a list and how far its current attempt has come. Its specification is asked for job by job."""

    namespace = serializers.UUIDField(source="namespace_id")
    namespace_slug = serializers.CharField(source="namespace.slug")
    owner = serializers.CharField(source="owner.username")
    replicas = serializers.DictField(child=serializers.IntegerField(), help_text="Tasks by role.")
    phase = serializers.ChoiceField(choices=PHASES)
    wanted = serializers.ChoiceField(choices=[(one.value, one.value) for one in Wanted])
    queue_state = serializers.SerializerMethodField(
        help_text="Of a queued job: `waiting`, or `never_fits` where it can never start as things are. Else null."
    )
    progress = serializers.SerializerMethodField(
        help_text="`step`, and perhaps `total`, `epoch` and `unit` (what is counted, if not steps)."
    )
    reclaim_at = serializers.SerializerMethodField(help_text="When tasks that still run after success are released.")
    model = serializers.SerializerMethodField(help_text="ID of the model that the job saved.")
    tags = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Job
        fields = [
            "id", "name", "namespace", "namespace_slug", "owner", "engine", "strategy", "phase", "wanted", "attempt",
            "queue_state", "reason", "message", "remedy", "position", "progress", "model", "created_at", "queued_at",
            "admitted_at", "started_at", "decided_at", "released_at", "cleaned_up_at", "reclaim_at", "replicas",
            "tags", "archived_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(choices=QUEUE_STATES, allow_null=True))
    def get_queue_state(self, job: Job) -> str | None:
        return queue_state(job)

    @extend_schema_field({"type": ["object", "null"], "additionalProperties": {"type": "number"}})
    def get_progress(self, job: Job) -> dict[str, Any] | None:
        return job.progress or None

    @extend_schema_field({"type": ["string", "null"], "format": "date-time"})
    def get_reclaim_at(self, job: Job) -> str | None:
        if job.phase != Phase.SUCCEEDED.value or job.decided_at is None or job.released_at or job.cleaned_up_at:
            return None
        due: datetime = job.decided_at + timedelta(seconds=job.reclaim_delay)
        return serializers.DateTimeField().to_representation(due)

    @extend_schema_field({"type": ["string", "null"], "format": "uuid"})
    def get_model(self, job: Job) -> str | None:
        """Looked up once for all rows of a page (`selectors.models_of`)."""
        model_id = self.context["models"].get(job.pk)
        return None if model_id is None else str(model_id)


class PinnedImageSerializer(serializers.Serializer[Any]):
    """An image that tasks run in, as it was when the job was launched."""

    name = serializers.CharField()
    reference = serializers.CharField(help_text="`registry/repository[:tag]@sha256:…`")
    digest = serializers.CharField(help_text="`sha256:…`")
    roles = serializers.ListField(child=serializers.ChoiceField(choices=ROLES))


class JobSerializer(JobRowSerializer):
    """A job and how far its current attempt has come."""

    spec = SpecField()
    images = serializers.SerializerMethodField(help_text="What the images of the job were when it was launched.")

    class Meta(JobRowSerializer.Meta):
        fields = [*JobRowSerializer.Meta.fields, "note", "spec", "images"]
        read_only_fields = fields

    @extend_schema_field(PinnedImageSerializer(many=True))
    def get_images(self, job: Job) -> list[dict[str, Any]]:
        return images_shown(spec_or_remains(job)[0])


class ServerSerializer(serializers.Serializer[Any]):
    """One TensorFlow server."""

    role = serializers.ChoiceField(choices=ROLES)
    index = serializers.IntegerField()
    target = serializers.CharField()


class ServingSerializer(serializers.Serializer[Any]):
    """The servers of a job that a program outside drives."""

    target = serializers.CharField(
        help_text="The `grpc://` address to connect to. The address of any other server works too."
    )
    reach = serializers.CharField(help_text="The network from which the addresses can be reached.")
    data_dir = serializers.CharField(help_text="Where each server reads the job's data; empty without inputs.")
    servers = ServerSerializer(many=True)


class PublishedProblemSerializer(serializers.Serializer[Any]):
    """Why nothing was published."""

    code = serializers.CharField()
    detail = serializers.CharField()
    remedy = serializers.CharField()


class PublishedSerializer(serializers.Serializer[Any]):
    """What a job publishes: the dataset, and the version once it is there. `version` is null before, and when it has
    been deleted since."""

    state = serializers.ChoiceField(choices=["pending", "published", "failed", "dropped"])
    dataset = serializers.CharField(help_text="The dataset's name.")
    version = serializers.UUIDField(allow_null=True)
    number = serializers.IntegerField(allow_null=True)
    problem = PublishedProblemSerializer(allow_null=True)
    records = serializers.IntegerField(allow_null=True, help_text="Of a preparation: the records that were written.")
    skipped = serializers.IntegerField(allow_null=True, help_text="Of a preparation: the bad records left out.")
    bad = serializers.ListField(child=serializers.CharField(), help_text="The first of them, with file and row.")


class JobDetailSerializer(JobSerializer):
    """One job, with what only its engine can tell."""

    serving = serializers.SerializerMethodField(help_text="For running `in_graph` jobs: the addresses of the servers.")
    published = serializers.SerializerMethodField(help_text="What the current attempt publishes; null: nothing.")

    class Meta(JobSerializer.Meta):
        fields = [*JobSerializer.Meta.fields, "serving", "published"]
        read_only_fields = fields

    @extend_schema_field(ServingSerializer(allow_null=True))
    def get_serving(self, job: Job) -> dict[str, Any] | None:
        serving = self.context["serving"]
        return None if serving is None else dict(ServingSerializer(serving).data)

    @extend_schema_field(PublishedSerializer(allow_null=True))
    def get_published(self, job: Job) -> dict[str, Any] | None:
        published = published_by(job)
        return None if published is None else dict(PublishedSerializer(published).data)


class FixSerializer(serializers.Serializer[Any]):
    """A change of the specification that takes the cause of a finding away: `field` gets `value`, or one more item."""

    label = serializers.CharField()  # type: ignore[assignment]  # a field of this name, not its own label
    field = serializers.CharField()
    value = serializers.CharField()
    adds = serializers.BooleanField()


class FindingSerializer(serializers.Serializer[Any]):
    """One thing found in the code before a launch. Of several `fixes` one is to be chosen."""

    severity = serializers.ChoiceField(choices=["error", "warning"])
    code = serializers.CharField()
    message = serializers.CharField()
    remedy = serializers.CharField()
    file = serializers.CharField()
    line = serializers.IntegerField()
    fixes = FixSerializer(many=True)
    makes = serializers.CharField(
        help_text="The source of a dataset that the portal can make (`POST /api/v1/made-datasets/`), or empty."
    )


class LaunchedJobSerializer(JobSerializer):
    """A job just launched, with what may go wrong."""

    warnings = serializers.SerializerMethodField()

    class Meta(JobSerializer.Meta):
        fields = [*JobSerializer.Meta.fields, "warnings"]
        read_only_fields = fields

    @extend_schema_field(FindingSerializer(many=True))
    def get_warnings(self, job: Job) -> list[dict[str, Any]]:
        return FindingSerializer(self.context["warnings"], many=True).data  # type: ignore[return-value]


class ShortageSerializer(serializers.Serializer[Any]):
    """One resource that lacks in one pool."""

    pool = serializers.ChoiceField(choices=["quota", "capacity", "machine", "nodes"])
    resource = serializers.CharField()
    needs = serializers.FloatField()
    unused = serializers.FloatField()
    limit = serializers.FloatField()
    short_by = serializers.FloatField()


class ProblemSerializer(serializers.Serializer[Any]):
    """One thing wrong with the specification."""

    field = serializers.CharField()
    code = serializers.CharField()
    message = serializers.CharField()
    remedy = serializers.CharField()
    value = serializers.CharField()


class CheckSerializer(serializers.Serializer[Any]):
    """What would become of the job if it were launched now."""

    verdict = serializers.ChoiceField(source="decision.fit", choices=["fits_now", "waits", "never_fits"])
    reason = serializers.CharField(help_text="Empty where it fits.")
    message = serializers.CharField(source="decision.message")
    remedy = serializers.CharField(source="decision.remedy")
    position = serializers.IntegerField(allow_null=True, help_text="How many jobs would be ahead.")
    numbers = ShortageSerializer(source="decision.numbers", many=True)
    largest_fit = serializers.DictField(
        source="decision.largest_fit",
        child=serializers.IntegerField(),
        allow_null=True,
        help_text="Replicas by role of the largest shape that fits now.",
    )
    problems = ProblemSerializer(many=True)
    warnings = FindingSerializer(many=True)
    paths = serializers.DictField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="The flags and variables that the tasks would get, with what `auto` stands for.",
    )
