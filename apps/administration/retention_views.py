"""The API of rules of retention, for administrators."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration import retention
from apps.administration.retention import Preview, RuleFacts
from apps.api.permissions import IsAdministrator
from apps.api.serializers import StrictSerializer
from apps.jobs.labels import LONGEST_TAG, MOST_TAGS
from apps.jobs.models import RetentionRule
from apps.jobs.models.retention import KINDS
from apps.namespaces.quota_models import LONGEST_REASON
from apps.namespaces.selectors import namespace_for
from yardmaster.lifecycle.retention import LONGEST_DAYS, MOST_NEWEST, Kind


class RetentionRuleSerializer(serializers.ModelSerializer[RetentionRule]):
    """How long one kind of what ended jobs left is kept."""

    namespace = serializers.SlugRelatedField(
        read_only=True,
        allow_null=True,
        slug_field="slug",
        help_text="Its slug; null: of every namespace that has no rule of its own.",
    )  # type: ignore[var-annotated]  # of no model in particular
    tags = serializers.ListField(child=serializers.CharField(), help_text="A job with one of these is kept.")

    class Meta:
        model = RetentionRule
        fields = [
            "id", "kind", "namespace", "days", "newest", "tags", "spares_models", "only_archived", "reason",
            "changed_at",
        ]  # fmt: skip
        read_only_fields = fields


class RuleWishSerializer(StrictSerializer):
    """A rule as it is to be."""

    kind = serializers.ChoiceField(
        choices=KINDS, help_text="`logs`, `files` (outputs, event files, checkpoints), or whole `jobs`."
    )
    namespace = serializers.CharField(
        max_length=63, required=False, allow_null=True, default=None, help_text="ID or slug; null: the portal's rule."
    )
    days = serializers.IntegerField(
        min_value=1, max_value=LONGEST_DAYS, allow_null=True,
        help_text="Removed so many days after the job has ended; null: kept for ever.",
    )  # fmt: skip
    newest = serializers.IntegerField(
        min_value=0, max_value=MOST_NEWEST, default=0,
        help_text="So many jobs of each namespace that ended last are kept in any case.",
    )  # fmt: skip
    tags = serializers.ListField(
        child=serializers.CharField(max_length=LONGEST_TAG), max_length=MOST_TAGS, default=list,
        help_text="A job with one of these is kept.",
    )  # fmt: skip
    spares_models = serializers.BooleanField(
        default=True, help_text="Keep what jobs have from which a version of a model comes. Whole jobs always do."
    )
    only_archived = serializers.BooleanField(default=False, help_text="Only of archived jobs.")


class RuleChangeSerializer(RuleWishSerializer):
    """The same, with the reason."""

    reason = serializers.CharField(max_length=LONGEST_REASON, help_text="Why: the audit keeps it.")


class RetentionPreviewSerializer(serializers.Serializer[Preview]):
    """What the rule would remove now."""

    jobs = serializers.IntegerField()
    bytes = serializers.IntegerField(source="size")
    oldest = serializers.DateTimeField(allow_null=True, help_text="When the first of these jobs ended.")
    newest = serializers.DateTimeField(allow_null=True, help_text="When the last of them ended.")
    namespaces = serializers.IntegerField(help_text="In how many namespaces they are.")
    is_cut = serializers.BooleanField(help_text="There are more: not all were looked at.")


class _ForAdministrators(ApiView):
    permission_classes = [IsAdministrator]
    scope = "admin"
    pagination_class = None

    def said(self, given: dict[str, Any]) -> RuleFacts:
        """Raises NotFound for a namespace that there is not."""
        ref = given.pop("namespace")
        return RuleFacts(
            **given | {"kind": Kind(given["kind"])}, namespace=namespace_for(self.user, ref) if ref else None
        )


class RetentionView(_ForAdministrators):
    """Rules of retention (administrators). Without one, everything is kept."""

    @extend_schema(responses=RetentionRuleSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(RetentionRuleSerializer(retention.rules(), many=True).data)

    @extend_schema(request=RuleChangeSerializer, responses=RetentionRuleSerializer)
    def put(self, request: Request) -> Response:
        """Set the rule of one kind, of the portal or of one namespace, in the place of the one that there was."""
        given = dict(self.read(RuleChangeSerializer).validated_data)
        reason = given.pop("reason")
        made = retention.rule_set(said=self.said(given), reason=reason, actor=self.user)
        return Response(RetentionRuleSerializer(made).data)


class RetentionPreviewView(_ForAdministrators):
    """What a rule would remove (administrators)."""

    @extend_schema(request=RuleWishSerializer, responses=RetentionPreviewSerializer)
    def post(self, request: Request) -> Response:
        """Count what the rule would remove if it were in force now. Changes nothing."""
        given = dict(self.read(RuleWishSerializer).validated_data)
        return Response(RetentionPreviewSerializer(retention.rule_preview(self.said(given))).data)


class RetentionRuleView(_ForAdministrators):
    """One rule (administrators)."""

    @extend_schema(
        parameters=[OpenApiParameter("reason", str, description="Kept in the audit log.")], responses={204: None}
    )
    def delete(self, request: Request, rule_id: UUID) -> Response:
        """Remove the rule: of a namespace, the portal's counts again; of the portal, everything is kept."""
        found = retention.rule_by_id(rule_id)
        retention.rule_reset(found=found, reason=request.query_params.get("reason", ""), actor=self.user)
        return Response(status=204)


urlpatterns: list[URLPattern | URLResolver] = [
    path("retention/", RetentionView.as_view(), name="retention"),
    path("retention/preview/", RetentionPreviewView.as_view(), name="retention_preview"),
    path("retention/<uuid:rule_id>/", RetentionRuleView.as_view(), name="retention_rule"),
]
