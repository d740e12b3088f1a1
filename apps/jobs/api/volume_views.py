"""The API of volumes: those of a namespace, and what is published to its data volume."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.serializers import SizeField, StrictSerializer
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import DATASETS
from apps.jobs import volume_copies
from apps.jobs.engines.volumes import engine_for_volumes, volume_create, volume_delete, volume_in, volume_resize
from apps.jobs.models import Job, Volume, VolumeCopy
from apps.jobs.state.volumes import volumes_of, with_amounts
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for
from apps.uploads.versioned.selectors import version_for
from yardmaster.job.volumes import VolumeKind


class NewVolumeSerializer(StrictSerializer):
    """A volume that a namespace is to have."""

    kind = serializers.ChoiceField(choices=Volume.Kind.choices)
    size = SizeField(
        required=False,
        help_text="Counts against the namespace's storage. Default: what is left of that quota, in whole MiB.",
    )
    engine = serializers.CharField(required=False, max_length=63, help_text="Default: the one engine with volumes.")


class VolumeSizeSerializer(StrictSerializer):
    size = SizeField(help_text="At least what it has: a volume can only be enlarged.")


class VolumeSerializer(serializers.ModelSerializer[Volume]):
    """`state`: `pending`, `ready`, `lost`, or `going`: it is being removed. `message` says why it is not ready, in the
    words of the engine."""

    state = serializers.SerializerMethodField()
    created_by = serializers.SerializerMethodField(help_text="User name; empty if the user was removed.")
    published = serializers.SerializerMethodField(help_text="Bytes of what was published to it.")

    leftovers = serializers.SerializerMethodField(help_text="Deleted jobs whose log directories are still on it.")

    class Meta:
        model = Volume
        fields = [
            "id", "kind", "engine", "size", "found_size", "state", "message", "remedy", "published", "leftovers",
            "looked_at", "created_at", "created_by",
        ]  # fmt: skip
        read_only_fields = fields

    def get_state(self, volume: Volume) -> str:
        return "going" if volume.goes else volume.phase

    def get_created_by(self, volume: Volume) -> str:
        return volume.created_by.username if volume.created_by else ""

    def get_published(self, volume: Volume) -> int:
        return volume_copies.bytes_on(volume)

    def get_leftovers(self, volume: Volume) -> int:
        known: int | None = getattr(volume, "leftover_count", None)
        return volume.leftovers.count() if known is None else known


class CleaningSerializer(serializers.Serializer[Job]):
    """The job that removes log directories of deleted jobs."""

    job = serializers.UUIDField(source="pk")


class VolumeCopySerializer(serializers.ModelSerializer[VolumeCopy]):
    """Where a version is on a data volume. `state`: `copying`, `ready` (jobs can read it there), `failed` or
    `removing`."""

    engine = serializers.CharField(source="volume.engine")
    volume = serializers.UUIDField(source="volume_id")
    job = serializers.UUIDField(source="job_id", allow_null=True, help_text="That copies or removes it, or did last.")

    class Meta:
        model = VolumeCopy
        fields = ["volume", "engine", "version", "dataset", "number", "files", "bytes", "state", "job", "changed_at"]
        read_only_fields = fields


class PublishSerializer(StrictSerializer):
    engine = serializers.CharField(required=False, max_length=63, help_text="Default: the portal's default engine.")


class _VolumeAddress(ApiView):
    scope = "data"

    def namespace(self, namespace_id: UUID, at_least: Role) -> Namespace:
        return namespace_for(self.user, namespace_id, at_least=at_least)

    def answer(self, volume: Volume, status: int = 200) -> Response:
        return Response(VolumeSerializer(volume).data, status=status)


class VolumesView(_VolumeAddress):
    """The volumes of a namespace. Managers create them."""

    @extend_schema(responses=VolumeSerializer(many=True))
    def get(self, request: Request, namespace_id: UUID) -> Response:
        rows = with_amounts(volumes_of(self.namespace(namespace_id, Role.VIEWER))).select_related("created_by")
        return self.page(rows.order_by("pk"), VolumeSerializer)

    @extend_schema(request=NewVolumeSerializer, responses={201: VolumeSerializer})
    def post(self, request: Request, namespace_id: UUID) -> Response:
        """Create one. It is there as soon as the cluster has it: `state` and `message` say how far that is."""
        namespace = self.namespace(namespace_id, Role.MANAGER)
        data: dict[str, Any] = self.read(NewVolumeSerializer).validated_data
        volume = volume_create(
            namespace=namespace, engine=engine_for_volumes(data.get("engine")), kind=VolumeKind(data["kind"]),
            size=data.get("size"), actor=self.user,
        )  # fmt: skip
        return self.answer(volume, 201)


class VolumeView(_VolumeAddress):
    """One volume."""

    @extend_schema(responses=VolumeSerializer)
    def get(self, request: Request, namespace_id: UUID, volume_id: UUID) -> Response:
        return self.answer(volume_in(self.namespace(namespace_id, Role.VIEWER), volume_id))

    @extend_schema(request=VolumeSizeSerializer, responses=VolumeSerializer)
    def patch(self, request: Request, namespace_id: UUID, volume_id: UUID) -> Response:
        """Enlarge it."""
        volume = volume_in(self.namespace(namespace_id, Role.MANAGER), volume_id)
        size = self.read(VolumeSizeSerializer).validated_data["size"]
        return self.answer(volume_resize(volume=volume, size=size, actor=self.user))

    @extend_schema(responses={202: VolumeSerializer})
    def delete(self, request: Request, namespace_id: UUID, volume_id: UUID) -> Response:
        """Remove it with all that is on it. Refused (`volume_in_use`) while jobs that are not over use it."""
        volume = volume_in(self.namespace(namespace_id, Role.MANAGER), volume_id)
        volume_delete(volume=volume, actor=self.user)
        volume.refresh_from_db()
        return self.answer(volume, 202)


class VolumeCleanView(_VolumeAddress):
    """What deleted jobs left on a log volume."""

    scope = "jobs"

    @extend_schema(request=None, responses={202: CleaningSerializer})
    def post(self, request: Request, namespace_id: UUID, volume_id: UUID) -> Response:
        """Remove it, by a job; the one that is at it, where there is one. 409 `nothing_left` where nothing is left."""
        volume = volume_in(self.namespace(namespace_id, Role.MANAGER), volume_id)
        return Response(CleaningSerializer(volume_copies.leftovers_remove(user=self.user, volume=volume)).data, 202)


class VolumeCopiesView(_VolumeAddress):
    """What was published to a data volume."""

    @extend_schema(responses=VolumeCopySerializer(many=True))
    def get(self, request: Request, namespace_id: UUID, volume_id: UUID) -> Response:
        volume = volume_in(self.namespace(namespace_id, Role.VIEWER), volume_id)
        return self.page(volume.copies.select_related("volume").order_by("pk"), VolumeCopySerializer)


class VolumeCopyView(_VolumeAddress):
    """One version on a data volume, also one that the portal has deleted since."""

    scope = "jobs"

    @extend_schema(responses={202: VolumeCopySerializer})
    def delete(self, request: Request, namespace_id: UUID, volume_id: UUID, version_id: UUID) -> Response:
        """Remove it from the volume, by a job. Refused (`volume_in_use`) while jobs read it from there."""
        volume = volume_in(self.namespace(namespace_id, Role.MEMBER), volume_id)
        copy = volume_copies.copy_on(volume, version_id)
        copy, _ = volume_copies.version_unpublish(user=self.user, copy=copy)
        return Response(VolumeCopySerializer(copy).data, status=202)


class VersionVolumeView(ApiView):
    """A dataset version on the data volume of its namespace. Changes launch jobs."""

    pagination_class = None

    @property
    def scope(self) -> str:
        return "data" if self.request.method in SAFE_METHODS else "jobs"

    def version(self, version_id: UUID) -> DatasetVersion:
        return version_for(DATASETS, self.user, version_id)

    @extend_schema(responses=VolumeCopySerializer(many=True))
    def get(self, request: Request, version_id: UUID) -> Response:
        """On which engines it is, or is on its way: one row each."""
        return Response(VolumeCopySerializer(volume_copies.copies_of(self.version(version_id)), many=True).data)

    @extend_schema(request=PublishSerializer, responses={200: VolumeCopySerializer, 202: VolumeCopySerializer})
    def put(self, request: Request, version_id: UUID) -> Response:
        """Publish it, by a job (202). One that is there, or on its way, is returned as it is."""
        version = self.version(version_id)
        engine = self.read(PublishSerializer).validated_data.get("engine")
        copy, is_new = volume_copies.version_publish(user=self.user, version=version, engine=engine)
        return Response(VolumeCopySerializer(copy).data, status=202 if is_new else 200)

    @extend_schema(
        parameters=[OpenApiParameter("engine", OpenApiTypes.STR, description="Default: the portal's default engine.")],
        responses={202: VolumeCopySerializer},
    )
    def delete(self, request: Request, version_id: UUID) -> Response:
        """Remove it from the volume, by a job. Refused (`volume_in_use`) while jobs read it from there."""
        copy = volume_copies.copy_of(self.version(version_id), request.query_params.get("engine"))
        copy, _ = volume_copies.version_unpublish(user=self.user, copy=copy)
        return Response(VolumeCopySerializer(copy).data, status=202)


_ONE = "namespaces/<uuid:namespace_id>/volumes/<uuid:volume_id>/"

urlpatterns: list[URLPattern | URLResolver] = [
    path("namespaces/<uuid:namespace_id>/volumes/", VolumesView.as_view(), name="volumes"),
    path("namespaces/<uuid:namespace_id>/volumes/<uuid:volume_id>/", VolumeView.as_view(), name="volume"),
    path(
        "namespaces/<uuid:namespace_id>/volumes/<uuid:volume_id>/clean/", VolumeCleanView.as_view(), name="volume_clean"
    ),
    path(f"{_ONE}versions/", VolumeCopiesView.as_view(), name="volume_versions"),
    path(f"{_ONE}versions/<uuid:version_id>/", VolumeCopyView.as_view(), name="volume_version"),
    path("dataset-versions/<uuid:version_id>/volume/", VersionVolumeView.as_view(), name="dataset_volume"),
]
