"""The JSON of sessions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.serializers import SizeField
from apps.hosting.state import STATES, Situation, situation_of
from apps.workbench.boards import selections
from apps.workbench.homes import kept_files
from apps.workbench.models import Kind, WorkbenchSession
from apps.workbench.services import name_of
from yardmaster.job.spec_spark import MOST


class StartSessionSerializer(serializers.Serializer[Any]):
    """What to start, for what, and with which size."""

    kind = serializers.ChoiceField(choices=Kind.choices)
    namespace = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=64,
        help_text="By ID or slug. Default: that of the jobs, or yours.",
    )
    jobs = serializers.ListField(
        child=serializers.UUIDField(), required=False, max_length=200,
        help_text="What a TensorBoard or a Spark history shows. Left out: a TensorBoard of all jobs of the namespace.",
    )  # fmt: skip
    size = serializers.CharField(required=False, allow_blank=True, max_length=32)
    idle_limit = serializers.IntegerField(
        required=False, allow_null=True, help_text="Seconds without use after which it is stopped."
    )
    engine = serializers.CharField(required=False, allow_blank=True, max_length=63)
    environment = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, max_length=36,
        help_text="The ID of an environment of the namespace, whose packages a Jupyter then has. Empty: none. "
        "Left out: as before.",
    )  # fmt: skip
    spark_executors = serializers.IntegerField(
        required=False, allow_null=True, min_value=0, max_value=1_000,
        help_text="Of a Jupyter's Spark cluster, within its size or on `spark_cluster`. 0: none. Left out: as before.",
    )  # fmt: skip
    spark_cluster = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, max_length=63,
        help_text="The registered Spark cluster that a Jupyter's executors are of. Empty: within its size. "
        "Left out: as before.",
    )  # fmt: skip
    spark_cores = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=MOST,
        help_text="Of each executor on `spark_cluster`. Left out: as before, at first 1.",
    )  # fmt: skip
    spark_memory = SizeField(
        required=False, allow_null=True,
        help_text="Of each executor on `spark_cluster`: its Java heap. Left out: as before, at first 1 GiB.",
    )  # fmt: skip
    accept_never_fits = serializers.BooleanField(required=False, default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["kind"] == Kind.JUPYTER and attrs.get("jobs"):
            raise serializers.ValidationError({"jobs": "A Jupyter shows no jobs. Leave jobs out."})
        return attrs


class RestartSessionSerializer(serializers.Serializer[Any]):
    """Another size, or the same."""

    size = serializers.CharField(required=False, allow_blank=True, max_length=32)
    starts = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        help_text="The number of the start to restart (`starts`), so that a repeated request restarts it once.",
    )


class ExtendSessionSerializer(serializers.Serializer[Any]):
    """Another limit, or the same counted from now."""

    idle_limit = serializers.IntegerField(required=False, allow_null=True)


class SizeSerializer(serializers.Serializer[Any]):
    """A preset."""

    name = serializers.CharField()
    cpu = serializers.FloatField(source="resources.cpu")
    memory = serializers.IntegerField(source="resources.memory", help_text="Bytes.")


class KeptFilesSerializer(serializers.Serializer[Any]):
    """What a Jupyter keeps, on all engines."""

    size = serializers.IntegerField(help_text="Bytes that count against the storage quota of the namespace.")
    reserved = serializers.BooleanField(help_text="Whether `size` is the space that is reserved for them, used or not.")
    deleting = serializers.BooleanField()
    message = serializers.CharField(help_text="Why they prevent a start, or what delays their deletion.")


class SelectionSerializer(serializers.Serializer[Any]):
    """Of how many jobs with event files a TensorBoard shows the newest ones."""

    jobs = serializers.IntegerField(help_text="How many jobs it shows.")
    of = serializers.IntegerField(help_text="How many jobs its namespace has.")
    message = serializers.CharField()


class SessionSerializer(serializers.Serializer[Any]):
    """A session of the workbench. Its state is as it was asked just now."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=Kind.choices)
    name = serializers.SerializerMethodField()
    namespace = serializers.UUIDField(source="namespace_id")
    owner = serializers.CharField(source="owner.username")
    jobs = serializers.ListField(source="job_ids", child=serializers.UUIDField(), help_text="Empty: all.")
    selection = serializers.SerializerMethodField(help_text="Which of its jobs it shows. null: all.")
    job = serializers.UUIDField(source="job_id", allow_null=True, help_text="Its log, quota and events are the job's.")
    size = serializers.CharField()
    spark_executors = serializers.IntegerField(help_text="Of the Spark cluster of a Jupyter. 0: it has none.")
    spark_cluster = serializers.CharField(help_text="The registered one that they are of. Empty: within its size.")
    spark_cores = serializers.SerializerMethodField(help_text="Of each of these. null: they share its size.")
    spark_memory = serializers.SerializerMethodField(help_text="The same in bytes.")
    starts = serializers.IntegerField(help_text="How often it was started.")
    state = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField(help_text="What it waits for, or why it ended.")
    remedy = serializers.SerializerMethodField()
    stops_at = serializers.SerializerMethodField(help_text="When it is stopped if it is not used before.")
    stops_soon = serializers.SerializerMethodField()
    stops_anyway = serializers.SerializerMethodField(
        help_text="Whether `stops_at` is the end of the longest time that a session may run, also if it is used."
    )
    restarts = serializers.SerializerMethodField(help_text="Whether it is started again once it has stopped.")
    idle_limit = serializers.IntegerField(source="idle_seconds", help_text="Seconds.")
    started_by = serializers.CharField(source="started_by.username", default=None, allow_null=True)
    started_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    taken_over_by = serializers.CharField(source="taken_over_by.username", default=None, allow_null=True)
    files = serializers.SerializerMethodField(help_text="What it keeps when it is stopped. null: nothing.")
    url = serializers.SerializerMethodField(help_text="Opens it, in a browser that is signed in. It stays the same.")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._known: dict[Any, Situation] = {}

    def _now(self, session: WorkbenchSession) -> Situation:
        """Asked once for all fields of a session."""
        if session.pk not in self._known:
            self._known[session.pk] = situation_of(session, timezone.now(), ask=self.context.get("ask", True))
        return self._known[session.pk]

    def get_name(self, session: WorkbenchSession) -> str:
        return self.context.get("names", {}).get(session.pk) or name_of(session)

    def get_spark_cores(self, session: WorkbenchSession) -> int | None:
        return session.spark_cores if session.spark_cluster else None

    def get_spark_memory(self, session: WorkbenchSession) -> int | None:
        return session.spark_memory if session.spark_cluster else None

    @extend_schema_field(serializers.ChoiceField(choices=STATES))
    def get_state(self, session: WorkbenchSession) -> str:
        return self._now(session).state.value

    def get_message(self, session: WorkbenchSession) -> str:
        return f"{self._now(session).message} {session.problem}".strip()

    def get_remedy(self, session: WorkbenchSession) -> str:
        return self._now(session).remedy

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_stops_at(self, session: WorkbenchSession) -> Any:
        return self._now(session).stops_at

    def get_stops_soon(self, session: WorkbenchSession) -> bool:
        return self._now(session).stops_soon

    def get_stops_anyway(self, session: WorkbenchSession) -> bool:
        return self._now(session).stops_anyway

    def get_restarts(self, session: WorkbenchSession) -> bool:
        return session.again is not None

    @extend_schema_field(SelectionSerializer(allow_null=True))
    def get_selection(self, session: WorkbenchSession) -> dict[str, Any] | None:
        known = self.context.get("selections")
        found = (selections([session]) if known is None else known).get(session.pk)
        return None if found is None else {"jobs": found.jobs, "of": found.of, "message": found.message}

    @extend_schema_field(KeptFilesSerializer(allow_null=True))
    def get_files(self, session: WorkbenchSession) -> dict[str, Any] | None:
        known = self.context.get("homes")
        found = kept_files(session, None if known is None else known.get(session.pk, []))
        return None if found is None else asdict(found)

    def get_url(self, session: WorkbenchSession) -> str:
        return reverse("session_open", args=[session.pk])
