"""Templates and schedules as JSON."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.serializers import StrictSerializer
from apps.jobs.api.serializers import SpecField, confirm_foreign_model_field
from apps.schedules.models import JobTemplate, RunState, Schedule, ScheduleRun
from apps.schedules.revisions import Revision
from apps.schedules.saving import LONGEST_DESCRIPTION, LONGEST_NAME
from apps.schedules.services import LONGEST_GRACE, MOST_KEPT, next_times, plan_of
from yardmaster.job.template_parameters import KINDS, LONGEST_HELP, MOST, MOST_CHOICES
from yardmaster.schedules.cron import LONGEST
from yardmaster.schedules.due import Overlap

MOST_REVISION = 2**31 - 1
_VALUES = serializers.DictField(
    child=serializers.JSONField(), required=False, default=dict,
    help_text="Of the template's parameters, by name. What is left out has its default.",
)  # fmt: skip
_OVERLAPS = [one.value for one in Overlap]
_OVERLAP = "If an earlier job has not ended: `skip` the time, `queue` it until then, or `stop` the earlier job."
_GRACE = "Seconds after its time within which a missed run is made up for, once."
_KEEPS = "How many ended jobs are kept; older ones are deleted with everything they left. 0: all."
_LATEST = "What is taken in its latest version: `code`, `inputs.0` …"


class ParameterSerializer(serializers.Serializer[Any]):
    """A parameter. `{{name}}` in an argument, or in the value of a variable, is replaced by its value."""

    name = serializers.CharField(help_text="Letters, digits and underscores.")
    kind = serializers.ChoiceField(choices=list(KINDS), help_text="What values are.")
    default = serializers.JSONField(allow_null=True, help_text="null: a launch must give a value.")
    minimum = serializers.FloatField(allow_null=True, help_text="Smallest number, or length of a text.")
    maximum = serializers.FloatField(allow_null=True, help_text="Largest number, or length of a text.")
    choices = serializers.ListField(child=serializers.CharField(), help_text=f"Of a choice: up to {MOST_CHOICES}.")
    help = serializers.CharField(allow_blank=True, help_text=f"For people; up to {LONGEST_HELP} characters.")


_PARAMETERS = serializers.ListField(
    child=serializers.JSONField(), required=False, help_text=f"Up to {MOST} parameters, as they are shown."
)


class JobTemplateRowSerializer(serializers.ModelSerializer[JobTemplate]):
    """A template, as lists show it."""

    namespace = serializers.CharField(source="namespace.slug", help_text="Slug.")
    revision = serializers.IntegerField(help_text="Number of the newest revision, which is launched.")
    created_by = serializers.SerializerMethodField(help_text="User name; empty if the user was removed.")

    class Meta:
        model = JobTemplate
        fields = ["id", "namespace", "name", "description", "revision", "created_at", "created_by", "changed_at"]
        read_only_fields = fields

    def get_created_by(self, template: JobTemplate) -> str:
        return template.created_by.username if template.created_by else ""


class JobTemplateSerializer(JobTemplateRowSerializer):
    """A template with its newest revision, which the view has put at `shown`."""

    spec = serializers.DictField(source="shown.spec", help_text="The job's specification, with `{{name}}`.")
    engine = serializers.CharField(source="shown.engine", help_text="Empty: the default engine.")
    latest = serializers.SerializerMethodField(help_text=_LATEST)
    parameters = ParameterSerializer(source="shown.parameters", many=True, help_text="What a launch may give.")

    class Meta(JobTemplateRowSerializer.Meta):
        fields = [*JobTemplateRowSerializer.Meta.fields, "engine", "spec", "latest", "parameters"]
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_latest(self, template: Any) -> list[str]:
        return sorted(template.shown.latest)


class TemplateFilterSerializer(serializers.Serializer[Any]):
    """Which templates or schedules to list."""

    namespace = serializers.CharField(required=False, max_length=63, help_text="Id or slug. Default: all of yours.")
    name = serializers.CharField(required=False, max_length=LONGEST_NAME, help_text="Exactly this name.")


class TemplateChangeSerializer(StrictSerializer):
    """What is left out stays as it is. What the job is becomes a new revision."""

    name = serializers.CharField(required=False, max_length=LONGEST_NAME, help_text="Unique in the namespace.")
    description = serializers.CharField(
        required=False, max_length=LONGEST_DESCRIPTION, allow_blank=True, help_text="For people."
    )
    spec = SpecField(required=False)
    engine = serializers.CharField(
        required=False, max_length=63, allow_blank=True, help_text="Empty: the default engine of each launch."
    )
    latest = serializers.ListField(
        child=serializers.CharField(max_length=20), required=False, max_length=100, help_text=_LATEST
    )
    parameters = _PARAMETERS


class NewTemplateSerializer(TemplateChangeSerializer):
    """A template of a job that is there (`job`), or of a specification (`spec`)."""

    namespace = serializers.CharField(required=False, max_length=63, help_text="Default: the job's, or your own.")
    name = serializers.CharField(max_length=LONGEST_NAME, help_text="Unique in the namespace.")
    job = serializers.UUIDField(required=False, help_text="Take the specification of this job.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("job" in attrs) == ("spec" in attrs):
            raise serializers.ValidationError({"job": "Give either `job` or `spec`."})
        return attrs


class TemplateLaunchSerializer(StrictSerializer):
    """A launch."""

    parameters = _VALUES
    name = serializers.CharField(
        required=False, default="", max_length=200, allow_blank=True, help_text="The job's. Default: the template's."
    )
    accept_never_fits = serializers.BooleanField(
        required=False, default=False, help_text="Queue the job even if it can never start as things are."
    )
    confirm_foreign_model = confirm_foreign_model_field()
    revision = serializers.IntegerField(
        required=False, min_value=1, max_value=MOST_REVISION, source="number",
        help_text="Launch this revision. Default: the newest.",
    )  # fmt: skip


class TemplateRevisionRowSerializer(serializers.Serializer[Any]):
    """A revision of a template, as lists show it."""

    revision = serializers.IntegerField(source="row.number", help_text="From 1. The newest is launched.")
    at = serializers.DateTimeField(source="row.at", help_text="When it was saved.")
    by = serializers.SerializerMethodField(help_text="User name; empty if the user was removed.")
    changes = serializers.ListField(
        child=serializers.CharField(), allow_null=True,
        help_text="What it changed of the one before, in words; null: that one is not kept any more.",
    )  # fmt: skip

    def get_by(self, one: Revision) -> str:
        return one.row.by.username if one.row.by else ""


class TemplateRevisionSerializer(TemplateRevisionRowSerializer):
    """A revision with what it says."""

    spec = serializers.DictField(source="row.spec", help_text="The job's specification, with `{{name}}`.")
    engine = serializers.CharField(source="row.engine", help_text="Empty: the default engine.")
    latest = serializers.SerializerMethodField(help_text=_LATEST)
    parameters = ParameterSerializer(source="row.parameters", many=True, help_text="What a launch may give.")

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_latest(self, one: Revision) -> list[str]:
        return sorted(one.row.latest)


class ScheduleSerializer(serializers.ModelSerializer[Schedule]):
    """A schedule and what it does next."""

    namespace = serializers.CharField(source="namespace.slug", help_text="Slug.")
    template = serializers.UUIDField(source="template_id", help_text="ID of the template.")
    template_name = serializers.CharField(source="template.name", help_text="Its name.")
    owner = serializers.SerializerMethodField(help_text="User name, as whom it launches; empty if removed.")
    parameters = serializers.DictField(source="values", help_text="Values of the template's parameters.")
    overlap = serializers.ChoiceField(choices=_OVERLAPS, help_text=_OVERLAP)
    grace = serializers.IntegerField(help_text=_GRACE)
    keeps = serializers.IntegerField(help_text=_KEEPS)
    next_at = serializers.DateTimeField(
        allow_null=True, help_text="Its next time; null if there is none, or it is paused."
    )
    next_times = serializers.SerializerMethodField(help_text="The next five, in its time zone.")
    paused_at = serializers.DateTimeField(allow_null=True, help_text="Since when it is paused, or null.")
    pause_reason = serializers.CharField(help_text="Why.")
    refusals = serializers.IntegerField(help_text="Refused launches in a row.")

    class Meta:
        model = Schedule
        fields = [
            "id", "namespace", "template", "template_name", "name", "owner", "parameters", "cron", "time_zone",
            "starts_at", "ends_at", "overlap", "grace", "keeps", "next_at", "next_times", "paused_at", "pause_code",
            "pause_reason", "refusals", "created_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_owner(self, schedule: Schedule) -> str:
        return schedule.owner.username if schedule.owner else ""

    @extend_schema_field(serializers.ListField(child=serializers.DateTimeField()))
    def get_next_times(self, schedule: Schedule) -> list[str]:
        if schedule.paused_at is not None:
            return []
        return [one.isoformat() for one in next_times(plan_of(schedule), timezone.now())]


class TimesSerializer(StrictSerializer):
    """Times, to look at before a schedule is made."""

    cron = serializers.CharField(max_length=LONGEST, help_text="Five fields: `30 2 * * 1-5`.")
    time_zone = serializers.CharField(max_length=64, help_text="Such as `Europe/Berlin`.")


class ScheduleChangeSerializer(StrictSerializer):
    """What is left out stays as it is."""

    name = serializers.CharField(required=False, max_length=LONGEST_NAME, help_text="Unique in the namespace.")
    cron = serializers.CharField(required=False, max_length=LONGEST, help_text="Five fields: `30 2 * * 1-5`.")
    time_zone = serializers.CharField(required=False, max_length=64, help_text="Such as `Europe/Berlin`.")
    parameters = serializers.DictField(
        child=serializers.JSONField(), required=False, source="values",
        help_text="Values of the template's parameters; what is left out has its default.",
    )  # fmt: skip
    starts_at = serializers.DateTimeField(required=False, allow_null=True, help_text="Nothing before this time.")
    ends_at = serializers.DateTimeField(required=False, allow_null=True, help_text="Nothing after this time.")
    overlap = serializers.ChoiceField(choices=_OVERLAPS, required=False, help_text=_OVERLAP)
    grace = serializers.IntegerField(required=False, min_value=0, max_value=LONGEST_GRACE, help_text=_GRACE)
    keeps = serializers.IntegerField(required=False, min_value=0, max_value=MOST_KEPT, help_text=_KEEPS)


class NewScheduleSerializer(ScheduleChangeSerializer):
    """A schedule of a template."""

    template = serializers.UUIDField(help_text="ID of the template that is launched.")
    name = serializers.CharField(max_length=LONGEST_NAME, help_text="Unique in the namespace.")
    cron = serializers.CharField(max_length=LONGEST, help_text="Five fields: `30 2 * * 1-5`.")
    time_zone = serializers.CharField(
        required=False, default="UTC", max_length=64, help_text="Such as `Europe/Berlin`."
    )


class NextTimesSerializer(serializers.Serializer[Any]):
    """The next times."""

    next_times = serializers.ListField(child=serializers.DateTimeField(), help_text="Up to five, in the time zone.")


class ScheduleRunSerializer(serializers.ModelSerializer[ScheduleRun]):
    """One time of a schedule and what became of it."""

    state = serializers.ChoiceField(choices=RunState.choices, help_text="`waiting`: for an earlier job, or a worker.")
    job = serializers.UUIDField(source="job_id", allow_null=True, help_text="The job; null if none is there.")
    phase = serializers.SerializerMethodField(help_text="The job's phase; empty if there is none.")
    is_asked_for = serializers.BooleanField(help_text="A person asked for it.")
    code = serializers.CharField(help_text="Why no job was launched; empty if one was.")
    message = serializers.CharField(help_text="The same in words.")

    class Meta:
        model = ScheduleRun
        fields = ["id", "planned_at", "decided_at", "state", "job", "phase", "is_asked_for", "code", "message"]
        read_only_fields = fields

    def get_phase(self, run: ScheduleRun) -> str:
        return run.job.phase if run.job else ""
