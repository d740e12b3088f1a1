"""The API of an engine's queue, for administrators."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration import queue_table
from apps.administration.queue_actions import MOST, Action, queue_act
from apps.api.idempotency import IdempotentPosts
from apps.api.offsets import ByOffset
from apps.api.permissions import IsAdministrator
from apps.api.serializers import StrictSerializer
from apps.jobs.state.holds import LONGEST_REASON


class HoldingJobSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    namespace = serializers.CharField(help_text="Its short name.")
    owner = serializers.CharField(help_text="User name.")


class HoldShownSerializer(serializers.Serializer[Any]):
    what = serializers.SerializerMethodField(help_text="`job` or `namespace`.")
    cause = serializers.CharField(help_text="`administrator` or `budget`.")
    reason = serializers.CharField()
    at = serializers.DateTimeField()

    def get_what(self, hold: Any) -> str:
        return "job" if hold.job_id else "namespace"


class WaitingSerializer(serializers.Serializer[Any]):
    """A job that waits."""

    id = serializers.UUIDField(source="job.pk")
    name = serializers.CharField(source="job.name")
    namespace = serializers.CharField(source="job.namespace.slug", help_text="Its short name.")
    owner = serializers.CharField(source="job.owner.username", help_text="User name.")
    priority = serializers.IntegerField(source="job.priority")
    position = serializers.IntegerField(
        source="job.position", allow_null=True, help_text="How many are before it; null: not decided, or never fits."
    )
    queued_at = serializers.DateTimeField(source="job.queued_at")
    reason = serializers.CharField(source="job.reason", help_text="The code of why it waits.")
    message = serializers.CharField(source="job.message")
    asked = serializers.DictField(child=serializers.FloatField(), help_text="What it asks for, by resource.")
    holders = HoldingJobSerializer(many=True, help_text="Jobs that hold what it waits for, the first few.")
    more_holders = serializers.IntegerField(help_text="How many more hold it.")
    holds = HoldShownSerializer(many=True, help_text="What is held of it: the job itself, or its namespace.")


class ActionSerializer(StrictSerializer):
    """One action; `hold` and `release` take namespaces beside jobs, or instead of them."""

    action = serializers.ChoiceField(choices=[one.value for one in Action])
    jobs = serializers.ListField(
        child=serializers.UUIDField(), required=False, default=list, max_length=MOST, help_text="Ids; not for drains."
    )
    namespaces = serializers.ListField(
        child=serializers.CharField(max_length=63),
        required=False,
        default=list,
        max_length=MOST,
        help_text="Short names or ids, to hold or release; also where no job of them waits.",
    )
    engine = serializers.CharField(
        required=False, default="", max_length=63, help_text="Of `drain` and `undrain`: the engine's name."
    )
    reason = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=LONGEST_REASON,
        help_text="Why; owners read it. Required but for `release`, `release_namespaces` and `undrain`.",
    )
    priority = serializers.IntegerField(required=False, min_value=-1000, max_value=1000, help_text="Of `priority`.")


class DoneSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField(help_text="With how many jobs, namespaces or engines something was done.")


class _Rows:
    """The queue as a sequence that is read page by page."""

    def __init__(self, engine: str, search: str) -> None:
        self._jobs = queue_table.jobs_waiting(engine, search)

    def __getitem__(self, wanted: slice) -> list[queue_table.Waiting]:
        return queue_table.shown(list(self._jobs[wanted]))


class QueueView(ApiView):
    """The jobs that wait for an engine, in their order."""

    scope = "admin"
    permission_classes = [IsAdministrator]
    pagination_class = ByOffset

    @extend_schema(
        parameters=[
            OpenApiParameter("engine", str, description="Its name. Default: the engine that jobs run on by default."),
            OpenApiParameter("search", str, description="A part of a job's or a namespace's name, or an owner."),
        ],
        responses=WaitingSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        engine = request.query_params.get("engine") or settings.YARDMASTER_DEFAULT_ENGINE
        return self.page(_Rows(engine[:63], request.query_params.get("search", "")[:100]), WaitingSerializer)


class QueueActionsView(IdempotentPosts, ApiView):
    """Change a queue: move, hold, release or stop jobs, hold namespaces, drain an engine."""

    scope = "admin"
    permission_classes = [IsAdministrator]
    posts_are_one_transaction = True

    @extend_schema(request=ActionSerializer, responses=DoneSerializer)
    def post(self, request: Request) -> Response:
        data = dict(self.read(ActionSerializer).validated_data)
        return Response({"count": queue_act(action=Action(data.pop("action")), actor=self.user, **data)})


urlpatterns: list[URLPattern | URLResolver] = [
    path("queue/", QueueView.as_view(), name="queue"),
    path("queue/actions/", QueueActionsView.as_view(), name="queue-actions"),
]
