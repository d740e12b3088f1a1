"""The API of batch inference: a version of a model and one of a dataset in, a job that publishes predictions out."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.idempotency import IdempotentPosts
from apps.api.serializers import StrictSerializer
from apps.datasets.selectors import DATASETS
from apps.jobs.api.job_views import JobAddress
from apps.jobs.api.prepare_views import AmountField
from apps.jobs.api.serializers import LaunchedJobSerializer, confirm_foreign_model_field
from apps.jobs.foreign import FIELD
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from apps.registry.selectors import model_version_for
from apps.serving.batch import BatchInference, batch_launch
from apps.uploads.versioned.selectors import version_for


class BatchSerializer(StrictSerializer):
    """Batch inference. `options` are those of the program `predict`: `signature`, `format`, `split`, `columns`, `keep`,
    `pixels`, `batch`, `write`, `shard_bytes`, `most_bad`."""

    dataset_version = serializers.UUIDField(help_text="Whose records are predicted.")
    to = serializers.CharField(max_length=100, help_text="The dataset that gets the predictions; created if absent.")
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=1_000)
    options = serializers.DictField(required=False, default=dict)
    workers = serializers.IntegerField(required=False, default=1, min_value=1, max_value=1_000)
    cpu = AmountField(required=False, help_text="Of one worker. Default: that of a model server.")
    memory = AmountField(required=False, help_text="Of one worker. Default: that of a model server.")
    name = serializers.CharField(required=False, allow_blank=True, default="", max_length=100)
    namespace = serializers.CharField(
        required=False, max_length=63, help_text="Where the job runs and publishes. Default: that of the model."
    )
    engine = serializers.CharField(required=False, max_length=63)
    accept_never_fits = serializers.BooleanField(required=False, default=False)
    confirm_foreign_model = confirm_foreign_model_field()


class BatchView(IdempotentPosts, JobAddress):
    """Predict over a dataset version: launches an ordinary job whose result is a dataset version of predictions."""

    @extend_schema(request=BatchSerializer, responses={201: LaunchedJobSerializer})
    def post(self, request: Request, version_id: UUID) -> Response:
        version = model_version_for(self.user, version_id)
        data: dict[str, Any] = dict(self.read(BatchSerializer).validated_data)
        dataset = version_for(DATASETS, self.user, data.pop("dataset_version"))
        where = data.pop("namespace", None) or str(version.parent.namespace_id)
        engine, accept, confirmed = data.pop("engine", None), data.pop("accept_never_fits"), data.pop(FIELD)
        job, warnings = batch_launch(
            user=self.user,
            version=version,
            data=dataset,
            namespace=namespace_for(self.user, where, at_least=Role.MEMBER),
            wanted=BatchInference(dataset=data.pop("to"), **data),
            engine=engine,
            request_key=None if self._claim is None else f"idempotency:{self._claim.record_id}",
            accept_never_fits=accept,
            confirmed=confirmed,
        )
        return self.answer(job, status=201, kind=LaunchedJobSerializer, warnings=warnings)


urlpatterns: list[URLPattern | URLResolver] = [
    path("model-versions/<uuid:version_id>/batch/", BatchView.as_view(), name="model_batch"),
]
