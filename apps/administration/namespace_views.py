"""The API of namespaces, members and quotas, and one's own profile with what one may use."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.accounts.models import User
from apps.accounts.selectors import user_by_id, user_by_name
from apps.accounts.serializers import ProfileChangesSerializer
from apps.accounts.services import profile_change
from apps.administration.namespace_serializers import (
    MemberSerializer,
    NamespaceSerializer,
    NewLimitsSerializer,
    NewMemberSerializer,
    NewTeamSerializer,
    ProfileSerializer,
    QuotaSerializer,
    RoleSerializer,
    TitleSerializer,
)
from apps.administration.services import Limits, quota_set
from apps.administration.usage import usage_of
from apps.api.idempotency import IdempotentPosts
from apps.api.permissions import IsAdministrator, ScopedAndSignedIn
from apps.errors import NotFound
from apps.namespaces import selectors, services
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import reading_note


class MeView(ApiView):
    """Your account, your namespaces and their use."""

    @extend_schema(responses=ProfileSerializer)
    def get(self, request: Request) -> Response:
        return self._profile(self.user)

    @extend_schema(request=ProfileChangesSerializer, responses=ProfileSerializer)
    def patch(self, request: Request) -> Response:
        return self._profile(profile_change(user=self.user, **self.read(ProfileChangesSerializer).validated_data))

    def _profile(self, user: User) -> Response:
        user.shares = selectors.shares_of(user)  # type: ignore[attr-defined]  # the serializer reads it from the user
        return Response(ProfileSerializer(user).data)


class _NamespaceAddress(ApiView):
    """Below one namespace: a stranger gets 404 at every address, a member with too low a role 403."""

    scope = "admin"

    def namespace(self, namespace_id: UUID, at_least: Role = Role.VIEWER) -> Namespace:
        return selectors.namespace_for(self.user, namespace_id, at_least=at_least)


class NamespacesView(IdempotentPosts, ApiView):
    """The namespaces you are a member of (administrators: all). Administrators make those of teams, since each brings
    a quota."""

    scope = "admin"
    posts_are_one_transaction = True

    def get_permissions(self) -> list[ScopedAndSignedIn]:
        return [IsAdministrator() if self.request.method == "POST" else ScopedAndSignedIn()]

    @extend_schema(responses=NamespaceSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(selectors.namespaces_with_role(self.user), NamespaceSerializer)

    @extend_schema(request=NewTeamSerializer, responses={201: NamespaceSerializer})
    def post(self, request: Request) -> Response:
        data = self.read(NewTeamSerializer).validated_data
        manager = user_by_name(data["manager"]) if "manager" in data else self.user
        made = services.team_create(slug=data["slug"], title=data["title"], manager=manager, actor=self.user)
        return Response(NamespaceSerializer(made).data, status=201)


class NamespaceView(_NamespaceAddress):
    """One namespace."""

    @extend_schema(responses=NamespaceSerializer)
    def get(self, request: Request, namespace_id: UUID) -> Response:
        return self._answer(namespace_id)

    @extend_schema(request=TitleSerializer, responses=NamespaceSerializer)
    def patch(self, request: Request, namespace_id: UUID) -> Response:
        namespace = self.namespace(namespace_id, Role.MANAGER)
        services.title_change(
            namespace=namespace, title=self.read(TitleSerializer).validated_data["title"], actor=self.user
        )
        return self._answer(namespace_id)

    def _answer(self, namespace_id: UUID) -> Response:
        found = selectors.namespaces_with_role(self.user).filter(pk=namespace_id).first()
        if found is None:
            raise NotFound("There is no such namespace, or you are not a member of it.")
        reading_note(self.user, "namespace", found.pk, found)
        return Response(NamespaceSerializer(found).data)


class MembersView(IdempotentPosts, _NamespaceAddress):
    """The members of a namespace."""

    posts_are_one_transaction = True

    @extend_schema(responses=MemberSerializer(many=True))
    def get(self, request: Request, namespace_id: UUID) -> Response:
        return self.page(selectors.members_of(self.namespace(namespace_id)), MemberSerializer)

    @extend_schema(request=NewMemberSerializer, responses={201: MemberSerializer})
    def post(self, request: Request, namespace_id: UUID) -> Response:
        namespace = self.namespace(namespace_id, Role.MANAGER)
        data = self.read(NewMemberSerializer).validated_data
        user = user_by_name(data["username"])
        member = services.member_add(namespace=namespace, user=user, role=Role(data["role"]), actor=self.user)
        return Response(MemberSerializer(member).data, status=201)


class MemberView(_NamespaceAddress):
    """One member. Managers change roles and remove members; every member can leave."""

    @extend_schema(request=RoleSerializer, responses=MemberSerializer)
    def patch(self, request: Request, namespace_id: UUID, user_id: UUID) -> Response:
        namespace = self.namespace(namespace_id, Role.MANAGER)
        role = Role(self.read(RoleSerializer).validated_data["role"])
        member = services.member_change(namespace=namespace, user=user_by_id(user_id), role=role, actor=self.user)
        return Response(MemberSerializer(member).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, namespace_id: UUID, user_id: UUID) -> Response:
        namespace = self.namespace(namespace_id, Role.VIEWER if user_id == self.user.pk else Role.MANAGER)
        services.member_remove(namespace=namespace, user=user_by_id(user_id), actor=self.user)
        return Response(status=204)


class QuotaView(_NamespaceAddress):
    """The quota of a namespace and its use. Members can read it, administrators can set it."""

    def get_permissions(self) -> list[ScopedAndSignedIn]:
        return [IsAdministrator() if self.request.method == "PUT" else ScopedAndSignedIn()]

    @extend_schema(responses=QuotaSerializer)
    def get(self, request: Request, namespace_id: UUID) -> Response:
        return Response(QuotaSerializer(usage_of(self.namespace(namespace_id))).data)

    @extend_schema(request=NewLimitsSerializer, responses=QuotaSerializer)
    def put(self, request: Request, namespace_id: UUID) -> Response:
        namespace = self.namespace(namespace_id)
        limits = dict(self.read(NewLimitsSerializer).validated_data)
        reason = limits.pop("reason")
        quota_set(namespace=namespace, limits=cast(Limits, limits), actor=self.user, reason=reason)
        return Response(QuotaSerializer(usage_of(namespace)).data)


urlpatterns: list[URLPattern | URLResolver] = [
    path("me/", MeView.as_view(), name="me"),
    path("namespaces/", NamespacesView.as_view(), name="namespaces"),
    path("namespaces/<uuid:namespace_id>/", NamespaceView.as_view(), name="namespace"),
    path("namespaces/<uuid:namespace_id>/members/", MembersView.as_view(), name="members"),
    path("namespaces/<uuid:namespace_id>/members/<uuid:user_id>/", MemberView.as_view(), name="member"),
    path("namespaces/<uuid:namespace_id>/quota/", QuotaView.as_view(), name="quota"),
]
