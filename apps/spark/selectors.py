"""Which Spark clusters there are, and who may use them."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from apps.accounts.models import User
from apps.errors import NotFound
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespaces_visible
from apps.spark.models import SparkCluster


def clusters_visible_to(user: User) -> QuerySet[SparkCluster]:
    """Those that some namespace of the user may use, the newest first; administrators see all of them, also those that
    are turned off."""
    rows = SparkCluster.objects.prefetch_related("namespaces").order_by("-pk")
    if user.is_staff:
        return rows
    allowed = SparkCluster.namespaces.through.objects.filter(namespace__in=namespaces_visible(user))
    return rows.filter(Q(everyone=True) | Q(pk__in=allowed.values("sparkcluster_id")), enabled=True)


def clusters_for(namespace: Namespace) -> QuerySet[SparkCluster]:
    """Those that jobs of this namespace may use, by name."""
    allowed = SparkCluster.namespaces.through.objects.filter(namespace=namespace).values("sparkcluster_id")
    return SparkCluster.objects.filter(Q(everyone=True) | Q(pk__in=allowed), enabled=True).order_by("name")


def cluster_named(user: User, name: str) -> SparkCluster:
    """Raises `NotFound`, also for one that the user may not use."""
    found = clusters_visible_to(user).filter(name=name).first()
    if found is None:
        raise NotFound("There is no such Spark cluster, or you may not use it.", "unknown_spark_cluster")
    return found


def cluster_of_job(name: str) -> SparkCluster:
    """The one that a job names, whether its namespace may still use it or not. Raises `NotFound` where it is gone."""
    found = SparkCluster.objects.filter(name=name).first()
    if found is None:
        remedy = "Ask an administrator to register it again, then retry the job."
        raise NotFound(f"The Spark cluster {name} is no longer registered.", "unknown_spark_cluster", remedy=remedy)
    return found


def cores_at_once() -> dict[str, int | None]:
    """Of every cluster, by the name of the resource that its cores are: how many all jobs together may have."""
    rows = SparkCluster.objects.values_list("name", "most_cores_at_once")
    return {SparkCluster(name=name).resource: most for name, most in rows}
