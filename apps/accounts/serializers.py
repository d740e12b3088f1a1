"""The JSON of people and tokens. What is not named here cannot be set from outside."""

from __future__ import annotations

from datetime import timedelta

from rest_framework import serializers

from apps.accounts.models import PersonalToken, User
from apps.accounts.services import token_lifetime, token_lifetime_default
from apps.api.permissions import SCOPES
from apps.api.serializers import StrictSerializer

_HUNDRED_YEARS = 100 * 366 * 86_400


class UserSerializer(serializers.ModelSerializer[User]):
    """A person as administrators see one."""

    email = serializers.CharField(help_text="May be empty.")
    namespace = serializers.UUIDField(source="personal_namespace.id", help_text="The personal namespace.")

    class Meta:
        model = User
        fields = [
            "id",
            "username",
            "email",
            "first_name",
            "last_name",
            "is_staff",
            "is_active",
            "date_joined",
            "last_login",
            "namespace",
        ]
        read_only_fields = fields


class NewUserSerializer(StrictSerializer):
    username = serializers.CharField(max_length=150)
    password = serializers.CharField(
        max_length=500,
        write_only=True,
        required=False,
        trim_whitespace=False,
        help_text="Omitted: the user can only sign in with a one-time link.",
    )
    email = serializers.EmailField(max_length=254, required=False, default="", allow_blank=True)
    first_name = serializers.CharField(max_length=150, required=False, default="", allow_blank=True)
    last_name = serializers.CharField(max_length=150, required=False, default="", allow_blank=True)
    is_staff = serializers.BooleanField(required=False, default=False)


class UserChangesSerializer(StrictSerializer):
    """What administrators change of a user. The name stays: it is in addresses and in the audit."""

    email = serializers.EmailField(max_length=254, required=False, allow_blank=True)
    first_name = serializers.CharField(max_length=150, required=False, allow_blank=True)
    last_name = serializers.CharField(max_length=150, required=False, allow_blank=True)
    is_staff = serializers.BooleanField(required=False)
    is_active = serializers.BooleanField(required=False, help_text="False ends every session and token at once.")


class ProfileChangesSerializer(StrictSerializer):
    """What people change of themselves. The address, with which one signs in, has its own page."""

    first_name = serializers.CharField(max_length=150, required=False, allow_blank=True)
    last_name = serializers.CharField(max_length=150, required=False, allow_blank=True)


class TokenSerializer(serializers.ModelSerializer[PersonalToken]):
    """A personal token without its secret."""

    scopes = serializers.ListField(child=serializers.ChoiceField(choices=SCOPES), read_only=True)
    created_at = serializers.DateTimeField(source="created", read_only=True)
    expires_at = serializers.DateTimeField(source="expiry", read_only=True, allow_null=True)

    class Meta:
        model = PersonalToken
        fields = ["id", "name", "scopes", "created_at", "expires_at", "last_used_at"]
        read_only_fields = fields


class _TokenWish(StrictSerializer):
    name = serializers.CharField(max_length=100)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=SCOPES),
        required=False,
        default=list,
        max_length=len(SCOPES),
        help_text="Empty: full access.",
    )
    expires_in = serializers.IntegerField(
        min_value=60,
        max_value=_HUNDRED_YEARS,
        required=False,
        allow_null=True,
        help_text="Seconds. Omitted: the portal's default. null: never expires, if the portal allows it.",
    )

    def lifetime(self) -> timedelta | None:
        """Raises Invalid for more than is allowed."""
        if "expires_in" not in self.validated_data:
            return token_lifetime_default()
        seconds = self.validated_data["expires_in"]
        return token_lifetime(None if seconds is None else timedelta(seconds=seconds))


class NewTokenSerializer(_TokenWish):
    """A wish for a personal token."""


class PasswordForTokenSerializer(_TokenWish):
    """Name and password for a personal token."""

    username = serializers.CharField(max_length=254, help_text="The user's name or e-mail address.")
    password = serializers.CharField(max_length=500, write_only=True, trim_whitespace=False)


class TokenWithSecretSerializer(TokenSerializer):
    """A new personal token. Its secret is never shown again."""

    token = serializers.CharField(read_only=True)

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]
        read_only_fields = fields


class TokensRevokedSerializer(StrictSerializer):
    """How many tokens were ended."""

    revoked = serializers.IntegerField(read_only=True)


class SecondFactorResetSerializer(StrictSerializer):
    """How many factors were taken away, recovery codes among them."""

    removed = serializers.IntegerField(read_only=True)


class SignInLinkSerializer(StrictSerializer):
    """A link that signs its user in once."""

    url = serializers.URLField(read_only=True)
    expires_in = serializers.IntegerField(read_only=True, help_text="Seconds.")
