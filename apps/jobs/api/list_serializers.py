"""What can be asked of the list of jobs, and its rows with the columns that were asked for.

Not here: how columns, orders and conditions are written (`yardmaster.job.list_columns`).
"""

from __future__ import annotations

from typing import Any

from django.http import QueryDict
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from apps.errors import Invalid
from apps.jobs.api.serializers import PHASES, QUEUE_STATES, STRATEGIES, JobRowSerializer
from apps.jobs.labels import LONGEST_TAG, MOST_TAGS
from apps.jobs.models import Job
from yardmaster.job.list_columns import (
    MOST_CONDITIONS,
    Column,
    Condition,
    NotAColumn,
    columns_of_texts,
    condition_of,
    ordering_of,
)


class _OrderingField(serializers.CharField):
    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=120, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            return ordering_of(text).key
        except NotAColumn as error:
            raise Invalid([error.problem]) from error


class _ColumnsField(serializers.CharField):
    def __init__(self, **options: Any) -> None:
        super().__init__(allow_blank=True, **options)

    def get_value(self, dictionary: Any) -> Any:
        if isinstance(dictionary, QueryDict) and self.field_name in dictionary:
            return ",".join(dictionary.getlist(str(self.field_name)))
        return super().get_value(dictionary) if self.field_name in dictionary else empty

    def run_validation(self, data: Any = empty) -> Any:
        """Blank: none. The framework would leave it as it is, a text."""
        found = super().run_validation(data)
        return () if found == "" else found

    def to_internal_value(self, data: Any) -> tuple[Column, ...]:  # type: ignore[override]
        text = super().to_internal_value(data)
        try:
            return columns_of_texts(one.strip() for one in text.split(",") if one.strip())
        except NotAColumn as error:
            raise Invalid([error.problem]) from error


class _ConditionField(serializers.CharField):
    def to_internal_value(self, data: Any) -> Condition:  # type: ignore[override]
        try:
            return condition_of(super().to_internal_value(data))
        except NotAColumn as error:
            raise Invalid([error.problem]) from error


class JobFilterSerializer(serializers.Serializer[Any]):
    """Which jobs to list."""

    namespace = serializers.CharField(required=False, max_length=63, help_text="Id or slug.")
    phase = serializers.MultipleChoiceField(required=False, choices=PHASES, help_text="May be given several times.")
    strategy = serializers.ChoiceField(required=False, choices=STRATEGIES)
    owner = serializers.CharField(required=False, max_length=150, help_text="Name or id.")
    search = serializers.CharField(required=False, max_length=200, help_text="Part of the name.")
    queue_state = serializers.ChoiceField(
        required=False,
        choices=QUEUE_STATES,
        help_text="Filter queued jobs: those that wait, or those that can never start.",
    )
    reason = serializers.CharField(required=False, max_length=63, help_text="The reason code, such as OutOfMemory.")
    tag = serializers.ListField(
        child=serializers.CharField(max_length=LONGEST_TAG), required=False, max_length=MOST_TAGS,
        help_text="Jobs with this tag. Given several times: with all of them.",
    )  # fmt: skip
    archived = serializers.BooleanField(required=False, default=False, help_text="Archived jobs instead of the others.")
    ordering = _OrderingField(
        required=False,
        help_text="What to sort by: `created`, `name`, or a column as in `columns`, with `-` in front for the largest "
        "first. Jobs without a value come last. Default: `-created`.",
    )
    columns = _ColumnsField(
        required=False,
        help_text="Further columns, separated by commas: `duration`, `queue_time`, `steps_per_second`, `gpu_hours`, "
        "`tags`, `metric:NAME` (the latest value), `min:NAME`, `max:NAME`, `parameter:NAME`. May be given several "
        "times; at most 12.",
    )
    where = serializers.ListField(
        child=_ConditionField(), required=False, max_length=MOST_CONDITIONS,
        help_text="Jobs whose metric meets this, such as `loss < 0.3` or `max:accuracy >= 0.9`. May be given several "
        "times.",
    )  # fmt: skip


class JobListRowSerializer(JobRowSerializer):
    """A job of a list, with the columns that were asked for."""

    columns = serializers.SerializerMethodField(
        help_text="The values of the columns that were asked for, by column; null: the job has none. Durations are in "
        "seconds, tags one text."
    )

    class Meta(JobRowSerializer.Meta):
        fields = [*JobRowSerializer.Meta.fields, "columns"]
        read_only_fields = fields

    @extend_schema_field({"type": "object", "additionalProperties": {"type": ["number", "string", "null"]}})
    def get_columns(self, job: Job) -> dict[str, Any]:
        found = self.context["values"].get(job.pk, ())
        return {one.column.key: one.value for one in found}
