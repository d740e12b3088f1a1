"""The API of preparations: a dataset version in, a job that publishes a prepared dataset out."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.idempotency import IdempotentPosts
from apps.api.serializers import StrictSerializer
from apps.datasets.selectors import DATASETS
from apps.jobs.api.job_views import JobAddress
from apps.jobs.api.serializers import LaunchedJobSerializer
from apps.jobs.preparing import CPU, MEMORY, Preparation, preparation_launch
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from apps.uploads.versioned.selectors import version_for


@extend_schema_field({"type": ["string", "number"]})
class AmountField(serializers.JSONField):
    """Any JSON here: the core reads it and names the problem."""


class PrepareSerializer(StrictSerializer):
    """A preparation. `options` are those of the program `prepare`: `format`, `split`, `seed`, `label`, `shard_bytes`,
    `records_per_shard`, `compression`, `on_bad_record`, `step`."""

    to = serializers.CharField(max_length=100, help_text="The dataset that gets the new version; created if absent.")
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=1_000)
    options = serializers.DictField(required=False, default=dict)
    workers = serializers.IntegerField(required=False, default=1, min_value=1, max_value=1_000)
    cpu = AmountField(required=False, help_text=f"Of one worker. Default: {CPU}.")
    memory = AmountField(required=False, help_text=f"Of one worker. Default: {MEMORY}.")
    name = serializers.CharField(required=False, allow_blank=True, default="", max_length=100)
    code = serializers.UUIDField(required=False, allow_null=True, default=None, help_text="That has the step.")
    namespace = serializers.CharField(
        required=False, max_length=63, help_text="Where the job runs and publishes. Default: that of the dataset."
    )
    engine = serializers.CharField(required=False, max_length=63)
    accept_never_fits = serializers.BooleanField(required=False, default=False)


class PrepareView(IdempotentPosts, JobAddress):
    """Prepare a dataset version as TFRecord shards: launches an ordinary job whose result is a new dataset version."""

    @extend_schema(request=PrepareSerializer, responses={201: LaunchedJobSerializer})
    def post(self, request: Request, version_id: UUID) -> Response:
        version = version_for(DATASETS, self.user, version_id)
        data: dict[str, Any] = dict(self.read(PrepareSerializer).validated_data)
        where = data.pop("namespace", None) or str(version.parent.namespace_id)
        engine, accept = data.pop("engine", None), data.pop("accept_never_fits")
        code = data.pop("code")
        job, warnings = preparation_launch(
            user=self.user,
            version=version,
            namespace=namespace_for(self.user, where, at_least=Role.MEMBER),
            wanted=Preparation(dataset=data.pop("to"), code=None if code is None else str(code), **data),
            engine=engine,
            request_key=None if self._claim is None else f"idempotency:{self._claim.record_id}",
            accept_never_fits=accept,
        )
        return self.answer(job, status=201, kind=LaunchedJobSerializer, warnings=warnings)


urlpatterns: list[URLPattern | URLResolver] = [
    path("dataset-versions/<uuid:version_id>/prepare/", PrepareView.as_view(), name="dataset_prepare"),
]
