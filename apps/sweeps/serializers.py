"""The JSON of sweeps. What makes a plan valid is said by `yardmaster.sweeps.plan`, not here."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.serializers import StrictSerializer
from apps.jobs.api.serializers import FindingSerializer, SpecField
from apps.jobs.models import Job
from apps.sweeps.models import Sweep, SweepTrial
from apps.sweeps.selectors import Standing, standing, state_of
from yardmaster.sweeps.decision import SweepState
from yardmaster.sweeps.space import MOST_PARAMETERS

STATES = [(one.value, one.value) for one in SweepState]
TRIAL_STATES = [
    (one, one) for one in ("waiting", "queued", "running", "succeeded", "failed", "stopped", "stopped_early")
]
_PLAN = {
    "type": "object",
    "description": "What is tried, and when it is over. Unknown keys are refused by name.",
    "required": ["parameters"],
    "properties": {
        "parameters": {
            "type": "object",
            "maxProperties": MOST_PARAMETERS,
            "description": "By name: a text (`0.1, 0.01`, `1..8`, `16..256 step 16`, `0.0001..0.1 log`), an array of "
            "values, or `{type, low, high, step?, scale?}`.",
            "additionalProperties": True,
        },
        "method": {"type": "string", "enum": ["grid", "random"]},
        "trials": {"type": "integer", "description": "Of the method random."},
        "seed": {"type": "integer"},
        "metric": {
            "type": ["object", "null"],
            "description": "`tag` of a scalar, `goal` (minimize or maximize), `run`?, `target`? (then it is over).",
            "additionalProperties": True,
        },
        "parallel": {"type": "integer", "description": "Trials that are queued or run at once."},
        "early_stop": {
            "type": ["object", "null"],
            "description": "`rule` (none, median or halving), `min_steps`, `factor`.",
            "additionalProperties": True,
        },
        "stop_after_failures": {"type": "integer", "description": "So many in a row pause it; 0: none do."},
    },
    "additionalProperties": True,
}


@extend_schema_field(_PLAN)
class PlanField(serializers.JSONField):
    """Any JSON here: the core reads it and names every problem."""


class NewSweepSerializer(StrictSerializer):
    """A sweep to be made. Without `namespace`: in your own; without `engine`: on the default one."""

    namespace = serializers.CharField(required=False, max_length=63, help_text="By ID or slug.")
    engine = serializers.CharField(required=False, max_length=63, help_text="Of all its jobs.")
    spec = SpecField(help_text="The job of each trial. `{{name}}` in arguments and variables is replaced by a value.")
    plan = PlanField(help_text="What is tried.")
    accept_never_fits = serializers.BooleanField(
        required=False, default=False, help_text="Queue trials even if they can never start as things are."
    )


class SweepRowSerializer(serializers.ModelSerializer[Sweep]):
    """A sweep of a list."""

    namespace = serializers.UUIDField(source="namespace_id", help_text="Its jobs are there.")
    namespace_slug = serializers.CharField(source="namespace.slug", help_text="The same, by slug.")
    owner = serializers.SerializerMethodField(help_text="User name; empty if the user was removed.")
    state = serializers.ChoiceField(choices=STATES, help_text="How far it is.")
    reason = serializers.CharField(help_text="Why it is paused, or ended before all trials were tried.")
    waiting = serializers.CharField(help_text="Why the next trial could not be launched yet; empty: it could.")
    count = serializers.IntegerField(help_text="Of its trials.")
    plan = PlanField(help_text="What is tried.")

    class Meta:
        model = Sweep
        fields = [
            "id", "name", "namespace", "namespace_slug", "owner", "engine", "state", "reason", "waiting", "count",
            "plan", "created_at", "ended_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_owner(self, sweep: Sweep) -> str:
        return sweep.owner.username if sweep.owner else ""


class TrialSerializer(serializers.ModelSerializer[SweepTrial]):
    """One trial, with what its metric came to."""

    number = serializers.IntegerField(help_text="From 1.")
    values = serializers.DictField(help_text="The value of each parameter.")
    state = serializers.SerializerMethodField(help_text="Of one with a job: whether that is queued or runs.")
    job = serializers.SerializerMethodField(help_text="ID of its job; null before the launch, and once it is deleted.")
    steps = serializers.IntegerField(allow_null=True, help_text="The last step of its metric.")
    value = serializers.FloatField(allow_null=True, help_text="The newest value of its metric that is a finite number.")
    best = serializers.FloatField(
        allow_null=True, help_text="The best value of its metric, at any step: trials are ranked by it."
    )
    best_step = serializers.IntegerField(allow_null=True, help_text="Where that was.")
    curve = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(allow_null=True)),
        help_text="Some points of its metric: step, and value or null where that is no finite number.",
    )

    class Meta:
        model = SweepTrial
        fields = [
            "number", "values", "state", "job", "stop_reason", "steps", "value", "best", "best_step", "curve",
            "launched_at", "started_at", "ended_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(choices=TRIAL_STATES))
    def get_state(self, trial: SweepTrial) -> str:
        return state_of(trial)

    @extend_schema_field({"type": ["string", "null"], "format": "uuid"})
    def get_job(self, trial: SweepTrial) -> str | None:
        job: Job | None = trial.job
        return None if job is None or job.deleted_at is not None else str(job.pk)


class SweepSerializer(SweepRowSerializer):
    """A sweep, how far it is, and its best trial."""

    spec = SpecField(source="base", help_text="The job of each trial, as it was sent.")
    counts = serializers.SerializerMethodField(help_text="Trials by state.")
    best = serializers.SerializerMethodField(help_text="The trial with the best value; null: none has any.")

    class Meta(SweepRowSerializer.Meta):
        fields = [*SweepRowSerializer.Meta.fields, "spec", "counts", "best"]
        read_only_fields = fields

    def to_representation(self, sweep: Sweep) -> Any:
        self._standing: Standing = standing(sweep)
        return super().to_representation(sweep)

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "integer"}})
    def get_counts(self, sweep: Sweep) -> dict[str, int]:
        return self._standing.counts

    @extend_schema_field(TrialSerializer(allow_null=True))
    def get_best(self, sweep: Sweep) -> dict[str, Any] | None:
        best = self._standing.best
        return None if best is None else dict(TrialSerializer(best).data)


class MadeSweepSerializer(SweepSerializer):
    """A sweep just made, with what may go wrong in its code."""

    warnings = serializers.SerializerMethodField(help_text="Found in the code at a look.")

    class Meta(SweepSerializer.Meta):
        fields = [*SweepSerializer.Meta.fields, "warnings"]
        read_only_fields = fields

    @extend_schema_field(FindingSerializer(many=True))
    def get_warnings(self, sweep: Sweep) -> list[dict[str, Any]]:
        return FindingSerializer(self.context["warnings"], many=True).data  # type: ignore[return-value]
