"""The API of a namespace's service accounts and their tokens: managers make, change and delete them; its members see
which there are."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.accounts.models import PersonalToken
from apps.accounts.serializers import NewTokenSerializer, TokenSerializer, TokenWithSecretSerializer
from apps.api.idempotency import IdempotentPosts
from apps.api.serializers import StrictSerializer
from apps.errors import Forbidden
from apps.namespaces import service_accounts as services
from apps.namespaces.models import Namespace, Role, ServiceAccount
from apps.namespaces.selectors import namespace_for


class ServiceAccountSerializer(serializers.ModelSerializer[ServiceAccount]):
    """The account of a program."""

    user = serializers.UUIDField(source="user_id", help_text="Its id as the owner of jobs.")
    username = serializers.CharField(source="user.username")
    role = serializers.SerializerMethodField(help_text="`viewer` or `member`.")
    made_by = serializers.CharField(source="user.service_made_by", help_text="Who created it.")

    class Meta:
        model = ServiceAccount
        fields = ["id", "user", "username", "name", "description", "role", "made_by", "created_at"]
        read_only_fields = fields

    def get_role(self, account: ServiceAccount) -> str:
        roles: dict[UUID, str] | None = self.context.get("roles")
        return roles[account.user_id] if roles is not None else services.role_of_service(account).value


class NewServiceAccountSerializer(StrictSerializer):
    name = serializers.CharField(max_length=40, help_text="a to z, 0 to 9 and inner hyphens. Cannot be changed.")
    role = serializers.ChoiceField(choices=Role.choices, default=Role.MEMBER, help_text="`viewer` or `member`.")
    description = serializers.CharField(max_length=200, required=False, default="", allow_blank=True)


class ServiceRoleSerializer(StrictSerializer):
    role = serializers.ChoiceField(choices=Role.choices, help_text="`viewer` or `member`.")


class RotationSerializer(StrictSerializer):
    overlap = serializers.IntegerField(
        min_value=0, max_value=int(services.LONGEST_OVERLAP.total_seconds()), required=False,
        default=int(services.OVERLAP.total_seconds()),
        help_text="Seconds that the old token stays valid, at most its own time.",
    )  # fmt: skip


class _Address(ApiView):
    scope = "admin"

    def namespace(self, namespace_id: UUID, at_least: Role = Role.MANAGER) -> Namespace:
        return namespace_for(self.user, namespace_id, at_least=at_least)

    def account(self, namespace_id: UUID, account_id: UUID, at_least: Role = Role.MANAGER) -> ServiceAccount:
        return services.service_account_in(self.namespace(namespace_id, at_least), account_id)

    def refuse_stronger(self, scopes: Iterable[str]) -> None:
        """A scoped token makes none that reaches further than itself."""
        own = getattr(self.request.auth, "scopes", None)
        if own and not set(scopes) <= set(own):
            message = f"This token's scopes are {', '.join(own)}, and the new one would have more."
            raise Forbidden(message, "Use a token with no scopes, or sign in.")

    def with_secret(self, made: tuple[PersonalToken, str]) -> Response:
        return Response({**TokenSerializer(made[0]).data, "token": made[1]}, status=201)


class ServiceAccountsView(IdempotentPosts, _Address):
    """The service accounts of a team."""

    posts_are_one_transaction = True

    @extend_schema(responses=ServiceAccountSerializer(many=True))
    def get(self, request: Request, namespace_id: UUID) -> Response:
        namespace = self.namespace(namespace_id, Role.VIEWER)
        rows = self.paginate_queryset(services.service_accounts_of(namespace)) or []
        context = {"roles": services.roles_of(namespace)}
        return self.get_paginated_response(ServiceAccountSerializer(rows, many=True, context=context).data)

    @extend_schema(request=NewServiceAccountSerializer, responses={201: ServiceAccountSerializer})
    def post(self, request: Request, namespace_id: UUID) -> Response:
        namespace = self.namespace(namespace_id)
        data = self.read(NewServiceAccountSerializer).validated_data
        made = services.service_account_create(
            namespace=namespace, name=data["name"], role=Role(data["role"]), description=data["description"],
            actor=self.user,
        )  # fmt: skip
        return Response(ServiceAccountSerializer(made).data, status=201)


class ServiceAccountView(_Address):
    """One service account."""

    @extend_schema(responses=ServiceAccountSerializer)
    def get(self, request: Request, namespace_id: UUID, account_id: UUID) -> Response:
        return Response(ServiceAccountSerializer(self.account(namespace_id, account_id, Role.VIEWER)).data)

    @extend_schema(request=ServiceRoleSerializer, responses=ServiceAccountSerializer)
    def patch(self, request: Request, namespace_id: UUID, account_id: UUID) -> Response:
        account = self.account(namespace_id, account_id)
        role = Role(self.read(ServiceRoleSerializer).validated_data["role"])
        services.service_account_change(account=account, role=role, actor=self.user)
        return Response(ServiceAccountSerializer(account).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, namespace_id: UUID, account_id: UUID) -> Response:
        """Ends its tokens at once. Its jobs keep running."""
        services.service_account_delete(account=self.account(namespace_id, account_id), actor=self.user)
        return Response(status=204)


class ServiceTokensView(IdempotentPosts, _Address):
    """The tokens of a service account, for managers."""

    answers_are_secret = True

    @extend_schema(responses=TokenSerializer(many=True))
    def get(self, request: Request, namespace_id: UUID, account_id: UUID) -> Response:
        return self.page(services.service_tokens_of(self.account(namespace_id, account_id)), TokenSerializer)

    @extend_schema(request=NewTokenSerializer, responses={201: TokenWithSecretSerializer})
    def post(self, request: Request, namespace_id: UUID, account_id: UUID) -> Response:
        """Takes at least one scope, of `read`, `jobs` and `data`."""
        account = self.account(namespace_id, account_id)
        wish = self.read(NewTokenSerializer)
        data = wish.validated_data
        self.refuse_stronger(data["scopes"])
        return self.with_secret(services.service_token_create(
            account=account, name=data["name"], scopes=data["scopes"], expires_in=wish.lifetime(), actor=self.user
        ))  # fmt: skip


class ServiceTokenView(_Address):
    """One token of a service account."""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, namespace_id: UUID, account_id: UUID, token_id: UUID) -> Response:
        account = self.account(namespace_id, account_id)
        token = services.service_token_in(account, token_id)
        services.service_token_revoke(token=token, actor=self.user, namespace=account.namespace)
        return Response(status=204)


class ServiceTokenRotationView(IdempotentPosts, _Address):
    """Replaces a token."""

    answers_are_secret = True

    @extend_schema(request=RotationSerializer, responses={201: TokenWithSecretSerializer})
    def post(self, request: Request, namespace_id: UUID, account_id: UUID, token_id: UUID) -> Response:
        """A new token like this one; this one ends after the overlap."""
        account = self.account(namespace_id, account_id)
        token = services.service_token_in(account, token_id)
        self.refuse_stronger(token.scopes)
        overlap = timedelta(seconds=self.read(RotationSerializer).validated_data["overlap"])
        return self.with_secret(services.service_token_rotate(
            account=account, token=token, overlap=overlap, actor=self.user, now=timezone.now()
        ))  # fmt: skip


_ONE = "namespaces/<uuid:namespace_id>/service-accounts/"
_ACCOUNT = f"{_ONE}<uuid:account_id>/"
urlpatterns: list[URLPattern | URLResolver] = [
    path(_ONE, ServiceAccountsView.as_view(), name="service-accounts"),
    path(_ACCOUNT, ServiceAccountView.as_view(), name="service-account"),
    path(f"{_ACCOUNT}tokens/", ServiceTokensView.as_view(), name="service-tokens"),
    path(f"{_ACCOUNT}tokens/<uuid:token_id>/", ServiceTokenView.as_view(), name="service-token"),
    path(
        f"{_ACCOUNT}tokens/<uuid:token_id>/rotation/", ServiceTokenRotationView.as_view(), name="service-token-rotation"
    ),
]
