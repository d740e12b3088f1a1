"""The API of datasets that the portal makes from sources that it knows."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.idempotency import IdempotentPosts
from apps.api.serializers import StrictSerializer
from apps.datasets.making import dataset_make, made_for, made_of, version_made
from apps.datasets.models import MadeDataset
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from yardmaster.code.known_data import dataset_name


class MadeDatasetSerializer(serializers.ModelSerializer[MadeDataset]):
    """A dataset that is made, or was."""

    namespace = serializers.CharField(source="namespace.slug")
    name = serializers.SerializerMethodField(help_text="Of the dataset.")
    state = serializers.ChoiceField(choices=MadeDataset.State.choices)
    problem = serializers.DictField(allow_null=True, help_text="Why it failed: `code, detail, remedy`.")
    received = serializers.IntegerField(help_text="Bytes that have come so far.")
    dataset_version = serializers.SerializerMethodField(
        help_text="Null until it is there, and again after it was deleted."
    )

    class Meta:
        model = MadeDataset
        fields = ["id", "namespace", "source", "name", "state", "problem", "received", "dataset_version", "started_at"]
        read_only_fields = fields

    def get_name(self, made: MadeDataset) -> str:
        return dataset_name(made.source)

    def get_dataset_version(self, made: MadeDataset) -> UUID | None:
        version = version_made(made)
        return None if version is None else version.pk


class NewMadeDatasetSerializer(StrictSerializer):
    namespace = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Id or slug. Default: your own."
    )
    source = serializers.CharField(  # type: ignore[assignment]  # a field of this name, not its own source
        max_length=200, help_text="`keras/mnist`, or several as `keras/imdb+reuters`: the sets of `keras.datasets`."
    )


class MadeDatasetsView(IdempotentPosts, ApiView):
    """Have the portal make a dataset from a source that it knows, once per namespace. Poll the address of the answer:
    the dataset is there when its state is `ready`."""

    scope = "data"
    posts_are_one_transaction = True

    @extend_schema(responses=MadeDatasetSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(made_for(self.user), MadeDatasetSerializer)

    @extend_schema(request=NewMadeDatasetSerializer, responses={202: MadeDatasetSerializer})
    def post(self, request: Request) -> Response:
        data: dict[str, Any] = dict(self.read(NewMadeDatasetSerializer).validated_data)
        namespace = namespace_for(self.user, data["namespace"], at_least=Role.MEMBER)
        made = dataset_make(namespace=namespace, user=self.user, source=data["source"])
        return Response(MadeDatasetSerializer(made).data, status=202)


class MadeDatasetView(ApiView):
    """A dataset that is made, or was."""

    scope = "data"

    @extend_schema(responses=MadeDatasetSerializer)
    def get(self, request: Request, made_id: UUID) -> Response:
        return Response(MadeDatasetSerializer(made_of(self.user, made_id)).data)


urlpatterns: list[URLPattern | URLResolver] = [
    path("made-datasets/", MadeDatasetsView.as_view(), name="made_datasets"),
    path("made-datasets/<uuid:made_id>/", MadeDatasetView.as_view(), name="made_dataset"),
]
