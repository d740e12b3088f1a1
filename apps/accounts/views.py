"""The API of people: one's own profile and tokens, and for administrators everybody's accounts."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth import authenticate
from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors, services
from apps.accounts.api_view import ApiView
from apps.accounts.attempts import attempt_begin
from apps.accounts.models import PersonalToken, User
from apps.accounts.second_factor import refuse_password_alone, second_factor_reset
from apps.accounts.serializers import (
    NewTokenSerializer,
    NewUserSerializer,
    PasswordForTokenSerializer,
    SecondFactorResetSerializer,
    SignInLinkSerializer,
    TokenSerializer,
    TokensRevokedSerializer,
    TokenWithSecretSerializer,
    UserChangesSerializer,
    UserSerializer,
)
from apps.accounts.user_list import ORDERS, STATES, user_list
from apps.api.idempotency import IdempotentPosts
from apps.api.permissions import IsAdministrator
from apps.errors import Invalid, NotFound, TooMany
from yardmaster.errors import Problem


def _with_secret(token: PersonalToken, secret: str) -> Response:
    return Response({**TokenSerializer(token).data, "token": secret}, status=201)


class PasswordForTokenView(ApiView):
    """Sign in with user name and password, and get a personal token. Used by the command line's `login`."""

    authentication_classes = []
    permission_classes = [AllowAny]

    @extend_schema(request=PasswordForTokenSerializer, responses={201: TokenWithSecretSerializer})
    def post(self, request: Request) -> Response:
        wish = self.read(PasswordForTokenSerializer)
        data = wish.validated_data
        attempt = attempt_begin(request._request, data["username"])
        try:
            user = authenticate(request._request, username=data["username"], password=data["password"])
        except TooMany:
            attempt.was_not_made()
            raise
        if not isinstance(user, User):
            raise AuthenticationFailed("The name or the password is wrong, or the account is locked.")
        refuse_password_alone(user)
        attempt.succeeded(user)
        made = services.token_create(user=user, name=data["name"], scopes=data["scopes"], expires_in=wish.lifetime())
        return _with_secret(*made)

    def get_authenticate_header(self, request: Request) -> str:
        return "Bearer"  # without it the framework turns a 401 into a 403


class TokensView(IdempotentPosts, ApiView):
    """Your personal tokens."""

    answers_are_secret = True

    @extend_schema(responses=TokenSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(selectors.tokens_of(self.user), TokenSerializer)

    @extend_schema(request=NewTokenSerializer, responses={201: TokenWithSecretSerializer})
    def post(self, request: Request) -> Response:
        services.token_refuse_service(self.user)
        wish = self.read(NewTokenSerializer)
        data = wish.validated_data
        made = services.token_create(
            user=self.user, name=data["name"], scopes=data["scopes"], expires_in=wish.lifetime()
        )
        return _with_secret(*made)

    @extend_schema(operation_id="tokens_destroy_all", responses={200: TokensRevokedSerializer})
    def delete(self, request: Request) -> Response:
        """Revokes all of your tokens, including the one that authenticates this request."""
        return Response({"revoked": services.tokens_revoke_all(user=self.user, actor=self.user)})


class TokenView(ApiView):
    """One of your personal tokens."""

    @extend_schema(responses=TokenSerializer)
    def get(self, request: Request, token_id: UUID) -> Response:
        return Response(TokenSerializer(selectors.token_for(self.user, token_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, token_id: UUID) -> Response:
        services.token_revoke(token=selectors.token_for(self.user, token_id), actor=self.user)
        return Response(status=204)


class CurrentTokenView(ApiView):
    """The personal token that authenticates this request."""

    permission_classes = [IsAuthenticated]  # whatever its scopes are: a token may always end itself

    @extend_schema(responses={204: None})
    def delete(self, request: Request) -> Response:
        if not isinstance(request.auth, PersonalToken):
            raise NotFound("This request uses a session, not a token.", remedy="Sign out instead.")
        services.token_revoke(token=request.auth, actor=self.user)
        return Response(status=204)


class _ForAdministrators(ApiView):
    permission_classes = [IsAdministrator]
    scope = "admin"


_SEARCH = OpenApiParameter("search", str, description="Part of a name or an e-mail address. Case is ignored.")
_STATE = OpenApiParameter("state", str, enum=list(STATES), description="Which users. Default: all.")
_ORDER = OpenApiParameter(
    "order", str, enum=[f"{sign}{one}" for one in ORDERS for sign in ("", "-")], description="Default: -joined."
)


class UsersView(IdempotentPosts, _ForAdministrators):
    """All user accounts."""

    @extend_schema(parameters=[_SEARCH, _STATE, _ORDER], responses=UserSerializer(many=True))
    def get(self, request: Request) -> Response:
        asked = request.query_params
        state = asked.get("state") or "all"
        if state not in STATES:
            raise Invalid(
                [Problem("state", "invalid", "Unknown state.", f"Use one of {', '.join(STATES)}.", state[:100])]
            )
        return self.page(user_list(asked.get("search", ""), state, asked.get("order", "")), UserSerializer)

    @extend_schema(request=NewUserSerializer, responses={201: UserSerializer})
    def post(self, request: Request) -> Response:
        user = services.user_create(actor=self.user, **self.read(NewUserSerializer).validated_data)
        return Response(UserSerializer(selectors.user_by_id(user.pk)).data, status=201)


class UserView(_ForAdministrators):
    """One account."""

    @extend_schema(responses=UserSerializer)
    def get(self, request: Request, user_id: UUID) -> Response:
        return Response(UserSerializer(selectors.user_by_id(user_id)).data)

    @extend_schema(request=UserChangesSerializer, responses=UserSerializer)
    def patch(self, request: Request, user_id: UUID) -> Response:
        changes = self.read(UserChangesSerializer).validated_data
        user = services.user_change(user=selectors.user_by_id(user_id), actor=self.user, **changes)
        return Response(UserSerializer(user).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, user_id: UUID) -> Response:
        services.user_delete(user=selectors.user_by_id(user_id), actor=self.user)
        return Response(status=204)


class UserTokensView(_ForAdministrators):
    """The personal tokens of another user. Administrators can revoke them, but not see them."""

    @extend_schema(responses={200: TokensRevokedSerializer})
    def delete(self, request: Request, user_id: UUID) -> Response:
        user = selectors.user_by_id(user_id)
        return Response({"revoked": services.tokens_revoke_all(user=user, actor=self.user)})


class UserSignInLinkView(IdempotentPosts, _ForAdministrators):
    """A one-time sign-in link, for a user who has no password or forgot it."""

    answers_are_secret = True

    @extend_schema(request=None, responses={201: SignInLinkSerializer})
    def post(self, request: Request, user_id: UUID) -> Response:
        url = services.sign_in_link_create(selectors.user_by_id(user_id), actor=self.user)
        return Response({"url": url, "expires_in": int(services.LINK_LASTS.total_seconds())}, status=201)


class SecondFactorResetView(_ForAdministrators):
    """For a user who has lost what two-step sign-in asks for."""

    @extend_schema(request=None, responses={200: SecondFactorResetSerializer})
    def post(self, request: Request, user_id: UUID) -> Response:
        """Turns off two-step sign-in of the user: every passkey, app and recovery code is removed. May be repeated."""
        return Response({"removed": second_factor_reset(user=selectors.user_by_id(user_id), actor=self.user)})


urlpatterns: list[URLPattern | URLResolver] = [
    path("auth/token/", PasswordForTokenView.as_view(), name="auth-token"),
    path("tokens/", TokensView.as_view(), name="tokens"),
    path("tokens/current/", CurrentTokenView.as_view(), name="current-token"),
    path("tokens/<uuid:token_id>/", TokenView.as_view(), name="token"),
    path("users/", UsersView.as_view(), name="users"),
    path("users/<uuid:user_id>/", UserView.as_view(), name="user"),
    path("users/<uuid:user_id>/second-factor/reset/", SecondFactorResetView.as_view(), name="user-second-factor-reset"),
    path("users/<uuid:user_id>/tokens/", UserTokensView.as_view(), name="user-tokens"),
    path("users/<uuid:user_id>/sign-in-link/", UserSignInLinkView.as_view(), name="user-sign-in-link"),
]
