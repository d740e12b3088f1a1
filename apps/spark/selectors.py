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
    """Those that new jobs of this namespace may use, by name."""
    return _allowed(namespace).filter(enabled=True).order_by("name")


def _allowed(namespace: Namespace) -> QuerySet[SparkCluster]:
    named = SparkCluster.namespaces.through.objects.filter(namespace=namespace).values("sparkcluster_id")
    return SparkCluster.objects.filter(Q(everyone=True) | Q(pk__in=named))


def cluster_named(user: User, name: str) -> SparkCluster:
    """Raises `NotFound`, also for one that the user may not use."""
    found = clusters_visible_to(user).filter(name=name).first()
    if found is None:
        raise NotFound("There is no such Spark cluster, or you may not use it.", "unknown_spark_cluster")
    return found


def cluster_of_job(name: str, namespace: Namespace) -> SparkCluster:
    """The one that a job of this namespace names; it may be turned off since. Raises `NotFound` where it is gone, or
    where the namespace may not use it any more."""
    found = _allowed(namespace).filter(name=name).first()
    if found is None:
        raise NotFound(
            f"The Spark cluster {name} is no longer registered, or {namespace.slug} may not use it any more.",
            "unknown_spark_cluster",
            remedy="Ask an administrator for access to it, then retry the job.",
        )
    return found


def cores_at_once() -> dict[str, int | None]:
    """Of every cluster, by the name of the resource that its cores are: how many all jobs together may have."""
    rows = SparkCluster.objects.values_list("name", "most_cores_at_once")
    return {SparkCluster(name=name).resource: most for name, most in rows}
