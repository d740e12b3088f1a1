"""What is asked of one task: that it ends, where it is held open, or that it writes where its threads stand. Terminals
are WebSockets (`apps.jobs.shell_sockets`).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.idempotency import IdempotentPosts
from apps.jobs.api.job_views import JobAddress
from apps.jobs.models.attempt import ROLES
from apps.jobs.shells import stacks_ask, task_of, task_release


class ReleasedSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=ROLES)
    index = serializers.IntegerField()


class TaskReleaseView(IdempotentPosts, JobAddress):
    """End the time for which a failed task is held open. It then ends as after any failure, within seconds."""

    @extend_schema(request=None, responses={202: ReleasedSerializer})
    def post(self, request: Request, job_id: UUID, task: str) -> Response:
        role, index = task_of(task)
        task_release(user=self.user, job=self.job(job_id), role=role, index=index)
        return Response({"role": role, "index": index}, status=202)


class TaskStacksView(IdempotentPosts, JobAddress):
    """Write where the threads of a running task stand to its log, within seconds."""

    @extend_schema(request=None, responses={202: ReleasedSerializer})
    def post(self, request: Request, job_id: UUID, task: str) -> Response:
        role, index = task_of(task)
        stacks_ask(user=self.user, job=self.job(job_id), role=role, index=index)
        return Response({"role": role, "index": index}, status=202)


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/<uuid:job_id>/tasks/<str:task>/release/", TaskReleaseView.as_view(), name="task_release"),
    path("jobs/<uuid:job_id>/tasks/<str:task>/stacks/", TaskStacksView.as_view(), name="task_stacks"),
]
