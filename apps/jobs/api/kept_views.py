"""The API of how long what an ended job has is kept."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.jobs.api.job_views import JobAddress
from apps.jobs.models import JobCleared
from apps.jobs.models.retention import KINDS
from apps.jobs.state.retention import fates_of
from yardmaster.lifecycle.retention import Fate, Kind, Spared


class KeptSerializer(serializers.Serializer[Any]):
    """What of the job a rule is for, or was removed by one."""

    kind = serializers.ChoiceField(choices=KINDS)
    until = serializers.DateTimeField(
        allow_null=True, help_text="When it is old enough to be removed; null: no rule is for it."
    )
    spared = serializers.ChoiceField(
        choices=[(one.value, one.value) for one in Spared], allow_null=True,
        help_text="Why it stays all the same; null: nothing keeps it.",
    )  # fmt: skip
    removed_at = serializers.DateTimeField(allow_null=True, help_text="When it was removed; null: it was not.")
    removed_by = serializers.CharField(allow_blank=True, help_text="The rule that removed it, in words.")
    removed_to = serializers.IntegerField(help_text="The newest attempt of which it was removed; 0: none.")


class JobKeptView(JobAddress):
    """Until when the log, the files and the job itself are kept, and what was removed by a rule."""

    pagination_class = None

    @extend_schema(responses=KeptSerializer(many=True))
    def get(self, request: Request, job_id: UUID) -> Response:
        job = self.job(job_id)
        cleared: JobCleared | None = getattr(job, "cleared", None)
        fates = fates_of(job, timezone.now()) if job.is_over else {}
        return Response(KeptSerializer([_shown(kind, fates.get(kind), cleared) for kind in Kind], many=True).data)


def _shown(kind: Kind, fate: Fate | None, cleared: JobCleared | None) -> dict[str, Any]:
    names = {"removed_at": "at", "removed_by": "rule", "removed_to": "attempt"}
    was = dict.fromkeys(names) | {"removed_by": "", "removed_to": 0}
    if cleared is not None and kind is not Kind.JOBS:
        was = {name: getattr(cleared, f"{kind.value}_{column}") for name, column in names.items()}
    return {"kind": kind.value, "until": fate and fate.due_at, "spared": fate and fate.spared, **was}


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/<uuid:job_id>/kept/", JobKeptView.as_view(), name="job_kept"),
]
