"""The API of invitations, previews of removals, signing a user out everywhere, and many members at once."""

from __future__ import annotations

from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.accounts.selectors import user_by_id
from apps.accounts.services import user_sign_out
from apps.administration.namespace_serializers import MemberSerializer
from apps.api.idempotency import IdempotentPosts
from apps.api.permissions import IsAdministrator
from apps.namespaces.invitations import (
    Wish,
    invitation_create,
    invitation_for,
    invitation_revoke,
    invitations_visible,
)
from apps.namespaces.many_invitations import invitations_create
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from apps.namespaces.services import members_add
from apps.people.mails import invitation_send, invitations_send, link_of
from apps.people.serializers import (
    InvitationSerializer,
    InvitationWithLinkSerializer,
    NewInvitationSerializer,
    NewInvitationsSerializer,
    NewMembersSerializer,
    RemovalPreviewSerializer,
)
from apps.removals.preview import preview_json, team_preview, user_preview


class InvitationsView(IdempotentPosts, ApiView):
    """Invitations: all for administrators; for others those of the teams that they manage."""

    scope = "admin"
    answers_are_secret = True

    @extend_schema(responses=InvitationSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(invitations_visible(self.user), InvitationSerializer)

    @extend_schema(request=NewInvitationSerializer, responses={201: InvitationWithLinkSerializer})
    def post(self, request: Request) -> Response:
        read = self.read(NewInvitationSerializer)
        data = read.validated_data
        ref = data["namespace"]
        team = namespace_for(self.user, ref, at_least=Role.MANAGER) if ref else None
        wish = Wish(team, Role(data["role"]), data["email"], read.lasts(), data["uses"])
        made, token = invitation_create(wish=wish, actor=self.user)
        link = link_of(token)
        is_sent = invitation_send(made, link)
        return Response({**InvitationSerializer(made).data, "url": link, "sent": is_sent}, status=201)


class ManyInvitationsView(IdempotentPosts, ApiView):
    """Invitations to many addresses in one go: to all of them, or to none where any will not do."""

    scope = "admin"
    answers_are_secret = True

    @extend_schema(request=NewInvitationsSerializer, responses={201: InvitationWithLinkSerializer(many=True)})
    def post(self, request: Request) -> Response:
        read = self.read(NewInvitationsSerializer)
        data = read.validated_data
        ref = data["namespace"]
        team = namespace_for(self.user, ref, at_least=Role.MANAGER) if ref else None
        wish = Wish(team, Role(data["role"]), lasts=read.lasts())
        made = invitations_create(wish=wish, emails=data["emails"], actor=self.user)
        found = [(one, link_of(token)) for one, token in made]
        sent = invitations_send(found)
        rows = [{**InvitationSerializer(one).data, "url": link, "sent": one.pk in sent} for one, link in found]
        return Response(rows, status=201)


class InvitationView(ApiView):
    """One invitation. `DELETE` revokes it; it stays in the list."""

    scope = "admin"

    @extend_schema(responses=InvitationSerializer)
    def get(self, request: Request, invitation_id: UUID) -> Response:
        return Response(InvitationSerializer(invitation_for(self.user, invitation_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, invitation_id: UUID) -> Response:
        invitation_revoke(invitation=invitation_for(self.user, invitation_id), actor=self.user)
        return Response(status=204)


class _ForAdministrators(ApiView):
    permission_classes = [IsAdministrator]
    scope = "admin"


class UserRemovalPreviewView(_ForAdministrators):
    """What removing the user would do, and what speaks against it."""

    @extend_schema(responses=RemovalPreviewSerializer)
    def get(self, request: Request, user_id: UUID) -> Response:
        return Response(RemovalPreviewSerializer(preview_json(user_preview(user_by_id(user_id), self.user))).data)


class TeamRemovalPreviewView(_ForAdministrators):
    """What removing the team would do."""

    @extend_schema(responses=RemovalPreviewSerializer)
    def get(self, request: Request, namespace_id: UUID) -> Response:
        return Response(
            RemovalPreviewSerializer(preview_json(team_preview(namespace_for(self.user, namespace_id)))).data
        )


class UserSignOutView(_ForAdministrators):
    """Sign a user out everywhere: sessions, tokens and one-time links end. The user may sign in again at once."""

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, user_id: UUID) -> Response:
        user_sign_out(user=user_by_id(user_id), actor=self.user)
        return Response(status=204)


class ManyMembersView(IdempotentPosts, ApiView):
    """Add several members to a team in one go: all of them, or none where any name will not do."""

    scope = "admin"
    posts_are_one_transaction = True

    @extend_schema(request=NewMembersSerializer, responses={201: MemberSerializer(many=True)})
    def post(self, request: Request, namespace_id: UUID) -> Response:
        team = namespace_for(self.user, namespace_id, at_least=Role.MANAGER)
        data = self.read(NewMembersSerializer).validated_data
        role = Role(data["role"])
        added = members_add(namespace=team, usernames=data["usernames"], role=role, actor=self.user)
        return Response(MemberSerializer(added, many=True).data, status=201)


urlpatterns: list[URLPattern | URLResolver] = [
    path("invitations/", InvitationsView.as_view(), name="invitations"),
    path("invitations/many/", ManyInvitationsView.as_view(), name="invitations-many"),
    path("invitations/<uuid:invitation_id>/", InvitationView.as_view(), name="invitation"),
    path("users/<uuid:user_id>/sign-out/", UserSignOutView.as_view(), name="user-sign-out"),
    path("users/<uuid:user_id>/removal/preview/", UserRemovalPreviewView.as_view(), name="user-removal-preview"),
    path(
        "namespaces/<uuid:namespace_id>/removal/preview/",
        TeamRemovalPreviewView.as_view(),
        name="namespace-removal-preview",
    ),
    path("namespaces/<uuid:namespace_id>/members/many/", ManyMembersView.as_view(), name="members-many"),
]
