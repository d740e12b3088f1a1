"""The API of Spark clusters: which ones a user may name, and their registration by administrators. The secret of one is
in no answer."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration.spark_uses import users_of_cluster
from apps.api.permissions import IsAdministrator, ScopedAndSignedIn
from apps.api.serializers import StrictSerializer
from apps.namespaces.named import MOST_NAMESPACES, namespaces_taken
from apps.namespaces.selectors import namespace_for, namespaces_visible
from apps.spark import services
from apps.spark.models import CheckState, SparkCluster
from apps.spark.selectors import cluster_named, clusters_for, clusters_visible_to


class SparkClusterSerializer(serializers.ModelSerializer[SparkCluster]):
    """A Spark cluster that jobs may name. Limits are null where there is none."""

    has_secret = serializers.BooleanField(help_text="Whether the cluster has a secret.")
    namespaces = serializers.SerializerMethodField(
        help_text="Slugs of the namespaces that may use it, as far as you can see them. Empty if `everyone` may."
    )
    state = serializers.ChoiceField(choices=CheckState.choices, help_text="Of the last check.")
    problem = serializers.CharField(help_text="Why no master answered. Empty: one did, or the check is running.")

    class Meta:
        model = SparkCluster
        fields = [
            "id", "name", "master", "driver_address", "python", "has_secret", "most_executors", "most_cores",
            "most_memory", "most_cores_at_once", "everyone", "namespaces", "enabled", "state", "problem", "checked_at",
            "created_at", "changed_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_namespaces(self, cluster: SparkCluster) -> list[str]:
        seen = self.context["seen"]
        return sorted(one.slug for one in cluster.namespaces.all() if seen is None or one.pk in seen)


def _limit(what: str) -> serializers.IntegerField:
    return serializers.IntegerField(required=False, allow_null=True, help_text=f"{what}. Null: no limit.")


class SparkClusterFactsSerializer(StrictSerializer):
    """What administrators say of a cluster. Left out: as it was, or the default."""

    master = serializers.CharField(required=False, help_text="`spark://HOST:PORT[,HOST:PORT]`", max_length=500)
    driver_address = serializers.CharField(
        required=False,
        max_length=253,
        help_text="At which executors reach drivers on the portal's machine (engine `local`).",
    )
    python = serializers.CharField(required=False, max_length=300, help_text="The interpreter of the executors.")
    secret = serializers.CharField(
        required=False, allow_blank=True, max_length=1_000, trim_whitespace=False,
        help_text="`spark.authenticate.secret`. Empty: the cluster has none.",
    )  # fmt: skip
    most_executors = _limit("Per job")
    most_cores = _limit("Per job, for all of its executors together")
    most_memory = _limit("Bytes per job, for all of its executors together")
    most_cores_at_once = _limit("For all jobs together: a job that needs more than are left waits")
    everyone = serializers.BooleanField(required=False, help_text="Whether all namespaces may use it.")
    namespaces = serializers.ListField(
        child=serializers.CharField(max_length=63), required=False, max_length=MOST_NAMESPACES,
        help_text="IDs or slugs of the namespaces that may use it, if not `everyone` may.",
    )  # fmt: skip
    enabled = serializers.BooleanField(required=False, help_text="Whether new jobs may name it.")


class NewSparkClusterSerializer(SparkClusterFactsSerializer):
    """A cluster to register."""

    name = serializers.CharField(max_length=63)
    master = serializers.CharField(help_text="`spark://HOST:PORT[,HOST:PORT]`", max_length=500)
    driver_address = serializers.CharField(
        max_length=253, help_text="At which executors reach drivers on the portal's machine (engine `local`)."
    )


class _ClusterAddress(ApiView):
    scope = "admin"

    def get_permissions(self) -> list[ScopedAndSignedIn]:
        return [ScopedAndSignedIn() if self.request.method in ("GET", "HEAD", "OPTIONS") else IsAdministrator()]

    def get_serializer_context(self) -> dict[str, Any]:
        seen = None if self.user.is_staff else set(namespaces_visible(self.user).values_list("pk", flat=True))
        return {**super().get_serializer_context(), "seen": seen}

    def answer(self, cluster: SparkCluster, status: int = 200) -> Response:
        return Response(SparkClusterSerializer(cluster, context=self.get_serializer_context()).data, status=status)


class SparkClustersView(_ClusterAddress):
    """The Spark clusters that jobs may name, the newest first. Administrators see all of them."""

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "namespace", str, description="ID or slug of a namespace: only the clusters that it may use."
            )
        ],
        responses=SparkClusterSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        found = clusters_visible_to(self.user)
        if ref := request.query_params.get("namespace"):
            found = found.filter(pk__in=clusters_for(namespace_for(self.user, ref)).order_by().values("pk"))
        return self.page(found, SparkClusterSerializer)

    @extend_schema(request=NewSparkClusterSerializer, responses={201: SparkClusterSerializer})
    def post(self, request: Request) -> Response:
        """Register a cluster (administrators). A worker looks whether its master answers."""
        data: dict[str, Any] = dict(self.read(NewSparkClusterSerializer).validated_data)
        namespaces = namespaces_taken(self.user, data) or []
        made = services.cluster_create(name=data.pop("name"), facts=data, namespaces=namespaces, actor=self.user)
        return self.answer(made, 201)


class SparkClusterView(_ClusterAddress):
    """One Spark cluster, by its name."""

    pagination_class = None

    @extend_schema(responses=SparkClusterSerializer)
    def get(self, request: Request, name: str) -> Response:
        return self.answer(cluster_named(self.user, name))

    @extend_schema(request=SparkClusterFactsSerializer, responses=SparkClusterSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change what is said of it (administrators). Tasks that start later are told the new values."""
        cluster = cluster_named(self.user, name)
        data: dict[str, Any] = dict(self.read(SparkClusterFactsSerializer).validated_data)
        namespaces = namespaces_taken(self.user, data)
        found = services.cluster_change(cluster=cluster, facts=data, namespaces=namespaces, actor=self.user)
        return self.answer(found)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Remove it (administrators). Refused (`spark_cluster_in_use`) while jobs that are not over name it."""
        cluster = cluster_named(self.user, name)
        services.cluster_delete(cluster=cluster, actor=self.user, used_by=users_of_cluster(cluster))
        return Response(status=204)


class SparkClusterCheckView(_ClusterAddress):
    """The check of a Spark cluster."""

    @extend_schema(request=None, responses=SparkClusterSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Have a worker look whether its master answers (administrators). `state` says `checking` until it has."""
        return self.answer(services.cluster_check(cluster=cluster_named(self.user, name), actor=self.user))


urlpatterns: list[URLPattern | URLResolver] = [
    path("spark-clusters/", SparkClustersView.as_view(), name="spark-clusters"),
    path("spark-clusters/<str:name>/", SparkClusterView.as_view(), name="spark-cluster"),
    path("spark-clusters/<str:name>/check/", SparkClusterCheckView.as_view(), name="spark-cluster-check"),
]
