"""The address that the task of a TensorBoard session asks: which event files are new."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.errors import NotFound
from apps.jobs.task_api.views import TaskView
from apps.workbench import boards
from apps.workbench.models import Kind, WorkbenchSession


class BoardQuerySerializer(serializers.Serializer[Any]):
    """Where the last answer ended."""

    cursor = serializers.CharField(required=False, allow_blank=True, default="", max_length=100)
    only = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=4000,
        help_text="Folders, separated by commas: their files alone are listed. Empty: those of all.",
    )  # fmt: skip


class BoardSegmentSerializer(serializers.Serializer[Any]):
    """Bytes of a file, and where they are read."""

    start = serializers.IntegerField()
    size = serializers.IntegerField()
    url = serializers.URLField()


class BoardFileSerializer(serializers.Serializer[Any]):
    """An event file that has changed."""

    path = serializers.CharField()
    size = serializers.IntegerField()
    segments = BoardSegmentSerializer(many=True)


class BoardSerializer(serializers.Serializer[Any]):
    """What a TensorBoard or a Spark history shows, as far as it has changed."""

    cursor = serializers.CharField()
    more = serializers.BooleanField(help_text="Whether to ask again at once.")
    wait = serializers.FloatField(help_text="Seconds until it is worth asking again.")
    selection = serializers.CharField(help_text="What its log says of jobs that are left out. Only at the start.")
    folders = serializers.ListField(child=serializers.CharField(), help_text="All that are shown now.")
    files = BoardFileSerializer(many=True)


class TaskBoardView(TaskView):
    """The event files of the jobs that a TensorBoard or a Spark history shows."""

    @extend_schema(parameters=[BoardQuerySerializer], responses=BoardSerializer)
    def get(self, request: Request) -> Response:
        session = WorkbenchSession.objects.filter(job=self.task.job_id).exclude(kind=Kind.JUPYTER).first()
        if session is None:
            raise NotFound("This job is no session that shows jobs.")
        now = timezone.now()
        asked = self.read(BoardQuerySerializer, request.query_params)
        cursor, only = boards.cursor_in(asked["cursor"]), frozenset(filter(None, asked["only"].split(",")))
        boards.watch(session, now)
        return Response(boards.listing(session, cursor, now, only), headers={"Cache-Control": "no-store"})


urlpatterns: list[URLPattern | URLResolver] = [path("task/board/", TaskBoardView.as_view(), name="task_board")]
