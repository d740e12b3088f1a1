"""The JSON of invitations, previews of removals, and many members at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.serializers import StrictSerializer
from apps.namespaces.invitations import DEFAULT_LASTS, LONGEST_LASTS, MOST_USES, STATES, state_of
from apps.namespaces.many_invitations import MOST_AT_ONCE as MOST_INVITED
from apps.namespaces.models import Invitation, Role
from apps.namespaces.services import MOST_AT_ONCE


class NewInvitationSerializer(StrictSerializer):
    email = serializers.EmailField(
        max_length=254,
        required=False,
        default="",
        allow_blank=True,
        help_text="Whom it is for; the link is sent there if the portal sends e-mail. Empty: for anyone with the link.",
    )
    namespace = serializers.CharField(
        max_length=63, required=False, default="", allow_blank=True,
        help_text="The team that one joins, by id or slug. Empty: an account alone, which administrators may give.",
    )  # fmt: skip
    role = serializers.ChoiceField(choices=Role.choices, default=Role.MEMBER, help_text="The role in the team.")
    expires_in = serializers.IntegerField(
        min_value=3_600,
        max_value=int(LONGEST_LASTS.total_seconds()),
        default=int(DEFAULT_LASTS.total_seconds()),
        help_text="Seconds.",
    )
    uses = serializers.IntegerField(
        min_value=1, max_value=MOST_USES, default=1, help_text="How many may use it. With an address: 1."
    )

    def lasts(self) -> timedelta:
        return timedelta(seconds=self.validated_data["expires_in"])


class NewInvitationsSerializer(StrictSerializer):
    """Invitations to many addresses, each with a link of its own."""

    emails = serializers.ListField(
        child=serializers.CharField(max_length=254), min_length=1, max_length=MOST_INVITED, help_text="All or none."
    )
    namespace = serializers.CharField(
        max_length=63, required=False, default="", allow_blank=True, help_text="As of one invitation."
    )
    role = serializers.ChoiceField(choices=Role.choices, default=Role.MEMBER, help_text="The role in the team.")
    expires_in = serializers.IntegerField(
        min_value=3_600,
        max_value=int(LONGEST_LASTS.total_seconds()),
        default=int(DEFAULT_LASTS.total_seconds()),
        help_text="Seconds.",
    )

    def lasts(self) -> timedelta:
        return timedelta(seconds=self.validated_data["expires_in"])


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An invitation without its link."""

    email = serializers.CharField(help_text="Empty: for anyone with the link.")
    namespace = serializers.UUIDField(source="namespace_id", allow_null=True, help_text="null: an account alone.")
    created_by = serializers.CharField(source="created_by.username")
    state = serializers.SerializerMethodField(help_text="void: its creator is locked.")
    used_by = serializers.SerializerMethodField(help_text="The user names of those who used it.")

    class Meta:
        model = Invitation
        fields = [
            "id", "email", "namespace", "role", "created_by", "created_at", "expires_at", "uses", "used", "state",
            "used_by",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(choices=STATES))
    def get_state(self, invitation: Invitation) -> str:
        return state_of(invitation, timezone.now())

    def get_used_by(self, invitation: Invitation) -> list[str]:
        return [one.username for one in invitation.used_by.all()]


class InvitationWithLinkSerializer(InvitationSerializer):
    """A new invitation. Its link is never shown again."""

    url = serializers.CharField(read_only=True)
    sent = serializers.BooleanField(read_only=True, help_text="Whether the link was sent to the address.")

    class Meta(InvitationSerializer.Meta):
        fields = [*InvitationSerializer.Meta.fields, "url", "sent"]
        read_only_fields = fields


class FateSerializer(serializers.Serializer[Any]):
    """What becomes of everything under one choice."""

    removed = serializers.DictField(child=serializers.IntegerField(), help_text="By kind; `bytes` in bytes.")
    kept = serializers.DictField(child=serializers.IntegerField(), help_text="By kind.")
    account_stays = serializers.CharField(help_text="Why the account stays, locked; empty: it is deleted.")


class RemovalPreviewSerializer(serializers.Serializer[Any]):
    """What a removal would do if it were requested now."""

    name = serializers.CharField()
    namespace = serializers.UUIDField()
    jobs_by_phase = serializers.DictField(child=serializers.IntegerField())
    found = serializers.DictField(child=serializers.IntegerField(), help_text="What there is, by kind.")
    volume_bytes = serializers.IntegerField(help_text="The size of the volumes on engines together.")
    jobs_in_teams = serializers.IntegerField(help_text="Jobs of the user in teams, which stay there.")
    orphaned_teams = serializers.ListField(
        child=serializers.CharField(), help_text="Teams that would have no manager: the removal is refused."
    )
    blockers = serializers.ListField(child=serializers.CharField(), help_text="Why it would be refused now.")
    keep = FateSerializer(help_text="With `data` keep.")
    delete = FateSerializer(help_text="With `data` delete.")


class NewMembersSerializer(StrictSerializer):
    usernames = serializers.ListField(
        child=serializers.CharField(max_length=150), min_length=1, max_length=MOST_AT_ONCE, help_text="All or none."
    )
    role = serializers.ChoiceField(choices=Role.choices, default=Role.MEMBER)
