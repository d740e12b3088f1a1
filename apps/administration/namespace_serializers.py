"""The JSON of namespaces, members and quotas."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.accounts.models import User
from apps.administration.usage import usage_of
from apps.api.serializers import StrictSerializer
from apps.jobs.api.detail_serializers import ShareByNameSerializer
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.quota_models import LONGEST_REASON
from yardmaster.job.spec_limits import shorten
from yardmaster.job.spec_rules import is_extended_name
from yardmaster.quantity import NotAQuantity, parse_cpu, parse_memory

_AMOUNT = {"oneOf": [{"type": "number", "minimum": 0}, {"type": "string"}, {"type": "null"}]}


class _Amount(serializers.Field[Any, Any, Any, Any]):
    """An amount as people write it, within what the database holds."""

    default_error_messages = {"invalid": "{reason}.", "range": "This must lie between 0 and {most}."}

    def __init__(self, parse: Callable[[object], float], most: int, **options: Any) -> None:
        super().__init__(**options)
        self.parse = parse
        self.most = most

    def to_internal_value(self, data: Any) -> float:
        try:
            amount = self.parse(data)
        except NotAQuantity as error:
            self.fail("invalid", reason=str(error).capitalize())
        if not 0 <= amount <= self.most:
            self.fail("range", most=self.most)
        return amount

    def to_representation(self, value: Any) -> Any:
        return float(value) if isinstance(value, Decimal) else value


@extend_schema_field(_AMOUNT)
class CpuField(_Amount):
    def __init__(self, **options: Any) -> None:
        super().__init__(parse_cpu, 10**8, **options)

    def to_internal_value(self, data: Any) -> Any:
        return Decimal(str(super().to_internal_value(data)))


@extend_schema_field(_AMOUNT)
class BytesField(_Amount):
    def __init__(self, **options: Any) -> None:
        super().__init__(parse_memory, 2**60, **options)


@extend_schema_field({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}})
class LimitsByNameField(serializers.Field[Any, Any, Any, Any]):
    """Limits of resources that have no field of their own: pieces, by name."""

    most_names, most_pieces = 50, 10**6
    default_error_messages = {
        "invalid": "Write limits by name: whole numbers, such as 4 of amd.com/gpu.",
        "name": "{name} is no name of a resource of another kind: write one such as amd.com/gpu.",
        "range": "The limit of {name} is a whole number between 0 and {most}.",
        "many": "At most {most} resources have limits.",
    }

    def to_internal_value(self, data: Any) -> dict[str, int]:
        if not isinstance(data, dict):
            self.fail("invalid")
        if len(data) > self.most_names:
            self.fail("many", most=self.most_names)
        for name, limit in data.items():
            if not is_extended_name(name):
                self.fail("name", name=shorten(str(name)))
            if not isinstance(limit, int) or isinstance(limit, bool) or not 0 <= limit <= self.most_pieces:
                self.fail("range", name=name, most=self.most_pieces)
        return dict(sorted(data.items()))

    def to_representation(self, value: Any) -> Any:
        return value


class LimitsSerializer(StrictSerializer):
    """Every limit; null: unlimited. All are asked for, so that none becomes unlimited by being forgotten."""

    cpu = CpuField(allow_null=True)
    memory = BytesField(allow_null=True)
    gpus = serializers.IntegerField(allow_null=True, min_value=0, max_value=10**6)
    storage = BytesField(allow_null=True)
    files = serializers.IntegerField(
        allow_null=True,
        required=False,
        min_value=0,
        max_value=10**12,
        help_text="Files in all versions and uploads together. Omitted: unchanged.",
    )
    running_jobs = serializers.IntegerField(allow_null=True, min_value=0, max_value=10**6)
    logs = BytesField(
        allow_null=True, required=False, help_text="Bytes of what tasks print, within the storage. Omitted: unchanged."
    )
    sessions = serializers.IntegerField(
        allow_null=True,
        required=False,
        min_value=0,
        max_value=10**6,
        help_text="Sessions of the workbench at once. Omitted: unchanged.",
    )
    queued_jobs = serializers.IntegerField(
        allow_null=True,
        required=False,
        min_value=0,
        max_value=10**6,
        help_text="Jobs that wait at once. Omitted: unchanged.",
    )
    extended = LimitsByNameField(
        required=False,
        help_text="Limits of other resources, by name. Where `gpus` has a limit, an accelerator that is not named here "
        "has the limit 0; other resources that are not named have none. Omitted: unchanged.",
    )
    priority_ceiling = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=1000,
        help_text="The highest priority with which the namespace's jobs count among those of other namespaces; above "
        "it a priority orders the jobs of the namespace only. Omitted: unchanged. 0 until an administrator "
        "raises it.",
    )


class NewLimitsSerializer(LimitsSerializer):
    """Every limit, and why they change."""

    reason = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=LONGEST_REASON,
        help_text="Why. Members read it in the history of the quota.",
    )  # fmt: skip


class AmountsSerializer(serializers.Serializer[Any]):
    """Amounts of what a quota bounds: cores, bytes, pieces."""

    cpu = serializers.FloatField()
    memory = serializers.IntegerField()
    gpus = serializers.IntegerField()
    storage = serializers.IntegerField()
    files = serializers.IntegerField()
    running_jobs = serializers.IntegerField()
    logs = serializers.IntegerField()
    sessions = serializers.IntegerField()
    queued_jobs = serializers.IntegerField()


class HardLimitsSerializer(serializers.Serializer[Any]):
    """The limits; null: unlimited."""

    cpu = serializers.FloatField(allow_null=True)
    memory = serializers.IntegerField(allow_null=True)
    gpus = serializers.IntegerField(allow_null=True)
    storage = serializers.IntegerField(allow_null=True)
    files = serializers.IntegerField(allow_null=True)
    running_jobs = serializers.IntegerField(allow_null=True)
    logs = serializers.IntegerField(allow_null=True)
    sessions = serializers.IntegerField(allow_null=True)
    queued_jobs = serializers.IntegerField(allow_null=True)


class QuotaSerializer(serializers.Serializer[Any]):
    """What a namespace may hold, holds, and has set aside for what is on its way."""

    hard = HardLimitsSerializer()
    used = AmountsSerializer()
    reserved = AmountsSerializer()
    extended = serializers.DictField(
        child=ShareByNameSerializer(), help_text="Resources of other kinds that are limited or in use, by name."
    )
    logs = serializers.IntegerField(help_text="Bytes of what tasks printed, within `used.storage`.")
    priority_ceiling = serializers.IntegerField(
        help_text="The highest priority with which its jobs count among those of other namespaces."
    )


class NamespaceSerializer(serializers.ModelSerializer[Namespace]):
    personal = serializers.SerializerMethodField(help_text="Whether it is a personal namespace, not a team's.")
    role = serializers.SerializerMethodField(help_text="Your role in the namespace.")

    class Meta:
        model = Namespace
        fields = ["id", "slug", "title", "personal", "role", "created_at"]
        read_only_fields = fields

    def get_personal(self, namespace: Namespace) -> bool:
        return namespace.owner_id is not None

    @extend_schema_field(serializers.ChoiceField(choices=Role.choices))
    def get_role(self, namespace: Namespace) -> str:
        # Annotated by `selectors.namespaces_with_role`, so that a list asks once.
        return getattr(namespace, "my_role", None) or Role.MANAGER.value


class NewTeamSerializer(StrictSerializer):
    slug = serializers.CharField(max_length=63)
    title = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)
    manager = serializers.CharField(
        max_length=150, required=False, help_text="User name of the first manager. Default: you."
    )


class TitleSerializer(StrictSerializer):
    title = serializers.CharField(max_length=100, allow_blank=True)


class MemberSerializer(serializers.ModelSerializer[Membership]):
    user = serializers.UUIDField(source="user_id")
    username = serializers.CharField(source="user.username")
    role = serializers.ChoiceField(choices=Role.choices)

    class Meta:
        model = Membership
        fields = ["user", "username", "role"]
        read_only_fields = fields


class NewMemberSerializer(StrictSerializer):
    username = serializers.CharField(max_length=150)
    role = serializers.ChoiceField(choices=Role.choices, default=Role.MEMBER)


class RoleSerializer(StrictSerializer):
    role = serializers.ChoiceField(choices=Role.choices)


class ShareSerializer(NamespaceSerializer):
    """A namespace of yours with what it may hold and holds."""

    usage = serializers.SerializerMethodField()

    class Meta(NamespaceSerializer.Meta):
        fields = [*NamespaceSerializer.Meta.fields, "usage"]
        read_only_fields = fields

    @extend_schema_field(QuotaSerializer)
    def get_usage(self, namespace: Namespace) -> dict[str, Any]:
        return QuotaSerializer(usage_of(namespace)).data


class ProfileSerializer(serializers.ModelSerializer[User]):
    """You, and where you may work."""

    email = serializers.CharField(help_text="May be empty.")
    namespaces = ShareSerializer(many=True, source="shares")

    class Meta:
        model = User
        fields = ["id", "username", "email", "first_name", "last_name", "is_staff", "namespaces"]
        read_only_fields = fields
