"""The API of shares and of priority classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration import priorities, shares
from apps.administration.priority_pages import named_namespaces
from apps.api.permissions import IsAdministrator, ScopedAndSignedIn
from apps.api.serializers import StrictSerializer
from apps.errors import Invalid
from apps.namespaces.models import PriorityClass, ShareNode
from apps.namespaces.priorities import classes_for
from apps.namespaces.selectors import namespace_for
from apps.namespaces.share_models import HEAVIEST, LONGEST_NAME, Users
from yardmaster.errors import Problem

MOST_RESOURCES = 20


class ShareNodeSerializer(serializers.ModelSerializer[ShareNode]):
    """A group of the tree of shares, or the place of a namespace in it."""

    parent = serializers.CharField(  # type: ignore[assignment]  # a field of this name, not what it is within
        source="parent.name", default=None, allow_null=True, help_text="The name of the group above. Null: at the top."
    )
    namespace = serializers.CharField(
        source="namespace.slug", default=None, allow_null=True, help_text="Null of a group."
    )
    guaranteed = serializers.DictField(
        child=serializers.FloatField(), help_text="What it gets first on each engine: cores, bytes, pieces."
    )

    class Meta:
        model = ShareNode
        fields = ["id", "name", "namespace", "parent", "weight", "guaranteed", "is_default"]
        read_only_fields = fields


class ShareNodeChangeSerializer(StrictSerializer):
    """What is to be changed of a share. Left out: stays as it is."""

    parent = serializers.CharField(  # type: ignore[assignment]  # as above
        required=False, allow_blank=True, allow_null=True, max_length=LONGEST_NAME,
        help_text="The name of the group above. Null: at the top.",
    )  # fmt: skip
    weight = serializers.IntegerField(required=False, min_value=0, max_value=HEAVIEST)
    guaranteed = serializers.DictField(
        child=serializers.FloatField(min_value=0, max_value=2**53), required=False,
        help_text="Cores as `cpu`, bytes as `memory`, pieces as `gpus` or another name. Replaces what there is.",
    )  # fmt: skip
    is_default = serializers.BooleanField(
        required=False, help_text="Of a group: whether namespaces that are in no group belong to it."
    )
    reason = serializers.CharField(max_length=shares.LONGEST_REASON, help_text="Kept in the audit log.")

    def said(self, node: ShareNode | None = None) -> shares.Said:
        """With what stays of a node. Raises `Invalid`."""
        given: dict[str, Any] = self.validated_data
        parent = node.parent if node and "parent" not in given else shares.group_named(given.get("parent") or "")
        weight = given.get("weight", node.weight if node else 1)
        guaranteed = given.get("guaranteed", node.guaranteed if node else {})
        return shares.Said(
            parent, weight, _bounded(guaranteed), given.get("is_default", node.is_default if node else False)
        )


def _bounded(guaranteed: Mapping[str, float]) -> dict[str, float]:
    if len(guaranteed) > MOST_RESOURCES or any(len(name) > 253 for name in guaranteed):
        message = f"At most {MOST_RESOURCES} resources, with names of at most 253 characters."
        raise Invalid([Problem("guaranteed", "too_many", message, "Name fewer resources.")])
    return {name: amount if name == "cpu" else int(amount) for name, amount in guaranteed.items()}


class NewShareNodeSerializer(ShareNodeChangeSerializer):
    """A new group, or the place of a namespace: one of `name` and `namespace`."""

    name = serializers.CharField(required=False, max_length=LONGEST_NAME, help_text="Of a new group.")
    namespace = serializers.CharField(required=False, max_length=63, help_text="ID or slug.")


class SharesView(ApiView):
    """The tree of shares (administrators)."""

    permission_classes = [IsAdministrator]
    scope = "admin"

    @extend_schema(responses=ShareNodeSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(ShareNode.objects.select_related("parent", "namespace").order_by("-pk"), ShareNodeSerializer)

    @extend_schema(request=NewShareNodeSerializer, responses={201: ShareNodeSerializer})
    def post(self, request: Request) -> Response:
        """Add a group, or place a namespace."""
        asked = self.read(NewShareNodeSerializer)
        given, said = asked.validated_data, asked.said()
        if ("name" in given) == ("namespace" in given):
            message = "Either name or namespace says what it is."
            raise Invalid([Problem("name", "conflict", message, "Write name for a group, or namespace for a place.")])
        if "name" in given:
            made = shares.group_create(name=given["name"], said=said, reason=given["reason"], actor=self.user)
        else:
            namespace = namespace_for(self.user, given["namespace"])
            made = shares.namespace_place(namespace=namespace, said=said, reason=given["reason"], actor=self.user)
        return Response(ShareNodeSerializer(made).data, status=201)


class ShareView(ApiView):
    """One share (administrators)."""

    permission_classes = [IsAdministrator]
    scope = "admin"
    pagination_class = None

    @extend_schema(responses=ShareNodeSerializer)
    def get(self, request: Request, node_id: UUID) -> Response:
        return Response(ShareNodeSerializer(shares.node_for(node_id)).data)

    @extend_schema(request=ShareNodeChangeSerializer, responses=ShareNodeSerializer)
    def patch(self, request: Request, node_id: UUID) -> Response:
        node, asked = shares.node_for(node_id), self.read(ShareNodeChangeSerializer)
        reason = asked.validated_data["reason"]
        changed = shares.node_change(node=node, said=asked.said(node), reason=reason, actor=self.user)
        return Response(ShareNodeSerializer(changed).data)

    @extend_schema(
        parameters=[OpenApiParameter("reason", str, description="Kept in the audit log.")], responses={204: None}
    )
    def delete(self, request: Request, node_id: UUID) -> Response:
        reason = request.query_params.get("reason", "")
        shares.node_remove(node=shares.node_for(node_id), reason=reason, actor=self.user)
        return Response(status=204)


class PriorityClassSerializer(serializers.ModelSerializer[PriorityClass]):
    """A named priority."""

    class Meta:
        model = PriorityClass
        fields = ["id", "name", "value", "description", "users", "is_default", "preempts", "is_preemptible"]
        read_only_fields = fields


class PriorityClassFactsSerializer(StrictSerializer):
    """What is said of a class. Left out: stays as it is."""

    value = serializers.IntegerField(required=False, min_value=-1000, max_value=1000)
    description = serializers.CharField(required=False, allow_blank=True, max_length=300)
    users = serializers.ChoiceField(choices=Users.choices, required=False, help_text="Who may use it.")
    namespaces = serializers.ListField(
        child=serializers.CharField(max_length=63), max_length=priorities.MOST_NAMESPACES, required=False,
        help_text="IDs or slugs, where named namespaces may use it.",
    )  # fmt: skip
    is_default = serializers.BooleanField(required=False, help_text="Whether jobs that say no priority get it.")
    preempts = serializers.BooleanField(
        required=False, help_text="Whether its jobs take the places of running ones of lower priority."
    )
    is_preemptible = serializers.BooleanField(required=False, help_text="Whether its own jobs may be preempted.")


class NewPriorityClassSerializer(PriorityClassFactsSerializer):
    """A new class."""

    name = serializers.CharField(max_length=LONGEST_NAME)
    value = serializers.IntegerField(min_value=-1000, max_value=1000)


class _PriorityAddress(ApiView):
    scope = "admin"
    pagination_class = None

    def get_permissions(self) -> list[ScopedAndSignedIn]:
        return [ScopedAndSignedIn() if self.request.method in ("GET", "HEAD", "OPTIONS") else IsAdministrator()]


class PriorityClassesView(_PriorityAddress):
    """The priority classes that your jobs in a namespace may have, the highest first."""

    @extend_schema(
        parameters=[OpenApiParameter("namespace", str, description="ID or slug; by default your own.")],
        responses=PriorityClassSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        namespace = namespace_for(self.user, request.query_params.get("namespace"))
        return Response(PriorityClassSerializer(classes_for(self.user, namespace), many=True).data)

    @extend_schema(request=NewPriorityClassSerializer, responses={201: PriorityClassSerializer})
    def post(self, request: Request) -> Response:
        """Add a class (administrators)."""
        data = dict(self.read(NewPriorityClassSerializer).validated_data)
        namespaces = named_namespaces(self.user, data.pop("namespaces", []))
        name = data.pop("name")
        made = priorities.class_create(
            name=name, facts=priorities.ClassFacts(**data), namespaces=namespaces, actor=self.user
        )
        return Response(PriorityClassSerializer(made).data, status=201)


class PriorityClassView(_PriorityAddress):
    """One priority class (administrators)."""

    permission_classes = [IsAdministrator]

    @extend_schema(request=PriorityClassFactsSerializer, responses=PriorityClassSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change it. Jobs that were launched keep their priority."""
        found = priorities.class_named(name)
        data = dict(self.read(PriorityClassFactsSerializer).validated_data)
        given = data.pop("namespaces", None)
        namespaces = list(found.namespaces.all()) if given is None else named_namespaces(self.user, given)
        known = {key: getattr(found, key) for key in priorities.ClassFacts.__annotations__}
        facts = priorities.ClassFacts(**{**known, **data})
        changed = priorities.class_change(found=found, facts=facts, namespaces=namespaces, actor=self.user)
        return Response(PriorityClassSerializer(changed).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Remove it. Jobs that were launched keep their priority."""
        priorities.class_remove(found=priorities.class_named(name), actor=self.user)
        return Response(status=204)


urlpatterns: list[URLPattern | URLResolver] = [
    path("shares/", SharesView.as_view(), name="shares"),
    path("shares/<uuid:node_id>/", ShareView.as_view(), name="share"),
    path("priority-classes/", PriorityClassesView.as_view(), name="priority_classes"),
    path("priority-classes/<slug:name>/", PriorityClassView.as_view(), name="priority_class"),
]
