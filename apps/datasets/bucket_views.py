"""The API of datasets that are buckets of other S3 servers."""

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
from apps.buckets.models import Bucket, State
from apps.datasets.registering import bucket_for, bucket_of, bucket_register, bucket_rescan, buckets_visible
from apps.datasets.selectors import DATASETS
from apps.errors import Conflict
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from apps.uploads.versioned.selectors import collection_for


class LeftOutSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    reason = serializers.CharField()


class BucketSerializer(serializers.ModelSerializer[Bucket]):
    """A bucket that is a dataset, and how far its last scan is."""

    namespace = serializers.CharField(source="namespace.slug")
    secret = serializers.SerializerMethodField(help_text="Name of the credentials; empty if they were deleted.")
    dataset = serializers.UUIDField(source="dataset_id", allow_null=True, help_text="Null until the first scan ended.")
    state = serializers.ChoiceField(choices=State.choices)
    problem = serializers.DictField(
        allow_null=True, help_text="Why the last scan failed, or is tried again: `code, detail, remedy`."
    )
    files = serializers.IntegerField(source="scanned", help_text="Objects that the last scan has found so far.")
    bytes = serializers.IntegerField(source="scanned_bytes")
    left_out = serializers.IntegerField(help_text="Objects that cannot be files and are not in the version.")
    left_out_first = LeftOutSerializer(many=True, help_text="The first of them.")

    class Meta:
        model = Bucket
        fields = [
            "id", "namespace", "name", "dataset", "endpoint", "bucket", "prefix", "region", "secret", "state",
            "problem", "files", "bytes", "left_out", "left_out_first", "started_at", "ended_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_secret(self, bucket: Bucket) -> str:
        return bucket.secret.name if bucket.secret else ""


class NewBucketSerializer(StrictSerializer):
    namespace = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Id or slug. Default: your own."
    )
    name = serializers.CharField(max_length=100, help_text="Of the dataset.")
    bucket = serializers.CharField(max_length=100)
    prefix = serializers.CharField(max_length=600, required=False, default="", allow_blank=True)
    endpoint = serializers.CharField(
        max_length=300, required=False, default="", allow_blank=True, help_text="Default: the one that is allowed."
    )
    region = serializers.CharField(max_length=100, required=False, default="us-east-1")
    secret = serializers.CharField(
        max_length=128, help_text="Name of a secret of the kind `s3` (administrators: or `s3_admin`)."
    )


class RescanSerializer(StrictSerializer):
    secret = serializers.CharField(
        max_length=128, required=False, default="", allow_blank=True,
        help_text="Name of other credentials to read the bucket with from now on.",
    )  # fmt: skip


class BucketsView(IdempotentPosts, ApiView):
    """Register a bucket, or a folder in it, as a dataset, without copying. Poll the address of the answer: the dataset
    is there when its state is `ready`."""

    scope = "data"
    posts_are_one_transaction = True

    @extend_schema(responses=BucketSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(buckets_visible(self.user), BucketSerializer)

    @extend_schema(request=NewBucketSerializer, responses={202: BucketSerializer})
    def post(self, request: Request) -> Response:
        data: dict[str, Any] = dict(self.read(NewBucketSerializer).validated_data)
        namespace = namespace_for(self.user, data.pop("namespace"), at_least=Role.MEMBER)
        made = bucket_register(namespace=namespace, user=self.user, **data)
        return Response(BucketSerializer(made).data, status=202)


class BucketView(ApiView):
    """A registered bucket and its last scan."""

    scope = "data"

    @extend_schema(responses=BucketSerializer)
    def get(self, request: Request, bucket_id: UUID) -> Response:
        return Response(BucketSerializer(bucket_for(self.user, bucket_id)).data)


class RescanView(IdempotentPosts, ApiView):
    """Scan the bucket of a dataset again. A new version is created only if objects were added, replaced or deleted."""

    scope = "data"
    posts_are_one_transaction = True

    @extend_schema(request=RescanSerializer, responses={202: BucketSerializer})
    def post(self, request: Request, collection_id: UUID) -> Response:
        dataset = collection_for(DATASETS, self.user, collection_id, at_least=Role.MEMBER)
        bucket = bucket_of(dataset)
        if bucket is None:
            raise Conflict("This dataset was uploaded, not registered from a bucket.", remedy="Upload a new version.")
        secret = self.read(RescanSerializer).validated_data["secret"]
        return Response(BucketSerializer(bucket_rescan(bucket=bucket, user=self.user, secret=secret)).data, status=202)


urlpatterns: list[URLPattern | URLResolver] = [
    path("buckets/", BucketsView.as_view(), name="buckets"),
    path("buckets/<uuid:bucket_id>/", BucketView.as_view(), name="bucket"),
    path("datasets/<uuid:collection_id>/rescan/", RescanView.as_view(), name="dataset_rescan"),
]
