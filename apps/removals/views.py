"""The API of removals, for administrators, and its JSON."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.accounts.selectors import user_by_id
from apps.api.idempotency import IdempotentPosts
from apps.api.permissions import IsAdministrator
from apps.api.serializers import StrictSerializer
from apps.namespaces.selectors import namespace_for
from apps.removals import services
from apps.removals.contents import removed_of
from apps.removals.models import Data, Removal


class WishSerializer(StrictSerializer):
    """What shall become of jobs, logs, models, datasets and code."""

    data = serializers.ChoiceField(  # type: ignore[assignment]  # declared fields are taken off the class
        choices=Data.choices,
        default=Data.KEEP,
        help_text="keep: administrators can still read the data in the closed namespace. delete: permanently.",
    )


class LockWishSerializer(StrictSerializer):
    stop_jobs = serializers.BooleanField(
        default=False, help_text="Also stop the user's unfinished jobs, in every namespace."
    )


class LockedSerializer(serializers.Serializer[Any]):
    stopped_jobs = serializers.IntegerField(help_text="How many jobs are being stopped.")


class LeftSerializer(serializers.Serializer[Any]):
    """One thing that is still there, and why."""

    what = serializers.CharField()
    why = serializers.CharField()


class RemovalSerializer(serializers.ModelSerializer[Removal]):
    namespace = serializers.UUIDField(source="namespace_id")
    user = serializers.UUIDField(source="user_id", allow_null=True, help_text="null: a team's namespace.")
    asked_by = serializers.CharField(source="asked_by_name")
    left = LeftSerializer(
        many=True, help_text="While in progress: what the removal waits for. After it ended: what was kept, and why."
    )

    found = serializers.DictField(
        child=serializers.IntegerField(), help_text="What there was, by kind; `bytes` in bytes. Empty: not counted."
    )
    removed = serializers.SerializerMethodField(help_text="After it ended: what has gone, by kind.")
    kept = serializers.DictField(child=serializers.IntegerField(), help_text="After it ended: what there is, by kind.")

    @extend_schema_field(serializers.DictField(child=serializers.IntegerField()))
    def get_removed(self, removal: Removal) -> dict[str, int]:
        return removed_of(removal.found, removal.kept) if removal.ended_at is not None else {}

    class Meta:
        model = Removal
        fields = [
            "id", "namespace", "slug", "user", "username", "data", "asked_by", "asked_at", "ended_at", "left",
            "found", "removed", "kept",
        ]  # fmt: skip
        read_only_fields = fields


class _ForAdministrators(ApiView):
    permission_classes = [IsAdministrator]
    scope = "admin"


class RemovalsView(_ForAdministrators):
    """Every removal, newest first."""

    @extend_schema(responses=RemovalSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(services.removals(), RemovalSerializer)


class RemovalView(_ForAdministrators):
    """The progress of one removal, and what it still waits for."""

    @extend_schema(responses=RemovalSerializer)
    def get(self, request: Request, removal_id: UUID) -> Response:
        return Response(RemovalSerializer(services.removal_by_id(removal_id)).data)


class UserLockView(_ForAdministrators):
    """Lock a user out at once: sessions, tokens and open WebSockets end, and, where it is asked for, the jobs. What is
    locked already stays so. `PATCH` of the user with `is_active` true unlocks."""

    @extend_schema(request=LockWishSerializer, responses={200: LockedSerializer})
    def post(self, request: Request, user_id: UUID) -> Response:
        wish = self.read(LockWishSerializer).validated_data
        stopped = services.user_lock(user=user_by_id(user_id), actor=self.user, stop_jobs=wish["stop_jobs"])
        return Response({"stopped_jobs": stopped})


class UserRemovalView(IdempotentPosts, _ForAdministrators):
    """Remove a user: locked out at once; then the jobs are stopped and archived, what engines keep for the personal
    namespace is removed and verified to be gone, and what is left is reported."""

    posts_are_one_transaction = True

    @extend_schema(request=WishSerializer, responses={202: RemovalSerializer})
    def post(self, request: Request, user_id: UUID) -> Response:
        data = Data(self.read(WishSerializer).validated_data["data"])
        removal = services.user_remove(user=user_by_id(user_id), data=data, actor=self.user)
        return Response(RemovalSerializer(removal).data, status=202)


class NamespaceRemovalView(IdempotentPosts, _ForAdministrators):
    """Remove a team's namespace, which is closed at once."""

    posts_are_one_transaction = True

    @extend_schema(request=WishSerializer, responses={202: RemovalSerializer})
    def post(self, request: Request, namespace_id: UUID) -> Response:
        data = Data(self.read(WishSerializer).validated_data["data"])
        namespace = namespace_for(self.user, namespace_id)
        removal = services.namespace_remove(namespace=namespace, data=data, actor=self.user)
        return Response(RemovalSerializer(removal).data, status=202)


urlpatterns: list[URLPattern | URLResolver] = [
    path("removals/", RemovalsView.as_view(), name="removals"),
    path("removals/<uuid:removal_id>/", RemovalView.as_view(), name="removal"),
    path("users/<uuid:user_id>/lock/", UserLockView.as_view(), name="user-lock"),
    path("users/<uuid:user_id>/removal/", UserRemovalView.as_view(), name="user-removal"),
    path("namespaces/<uuid:namespace_id>/removal/", NamespaceRemovalView.as_view(), name="namespace-removal"),
]
