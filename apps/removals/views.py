"""The API of removals, for administrators."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.accounts.selectors import user_by_id
from apps.api.idempotency import IdempotentPosts
from apps.api.permissions import IsAdministrator
from apps.namespaces.selectors import namespace_for
from apps.removals import selectors, services
from apps.removals.models import Data
from apps.removals.serializers import LockedSerializer, LockWishSerializer, RemovalSerializer, WishSerializer


class _ForAdministrators(ApiView):
    permission_classes = [IsAdministrator]
    scope = "admin"


class RemovalsView(_ForAdministrators):
    """Every removal, newest first."""

    @extend_schema(responses=RemovalSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(selectors.removals(), RemovalSerializer)


class RemovalView(_ForAdministrators):
    """The progress of one removal, and what it still waits for."""

    @extend_schema(responses=RemovalSerializer)
    def get(self, request: Request, removal_id: UUID) -> Response:
        return Response(RemovalSerializer(selectors.removal_by_id(removal_id)).data)


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
