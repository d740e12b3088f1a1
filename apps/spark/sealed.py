"""The secret of a cluster, encrypted as all secrets are. Only a task of a job that uses the cluster is given it."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from apps.secrets.resealing import rows_reseal
from apps.secrets.sealing import seal, unseal
from apps.secrets.services import resealing
from apps.spark.models import SparkCluster


def secret_seal(cluster: SparkCluster, secret: str) -> None:
    """Put the secret into the row, which is not saved. Empty: it has none."""
    cluster.sealed, cluster.key_id = seal(secret.encode(), _belongs_to(cluster)) if secret else (None, "")


def secret_of(cluster: SparkCluster) -> str:
    """The secret; empty where the cluster has none. Raises `CannotOpen`."""
    if cluster.sealed is None:
        return ""
    name = f"of the Spark cluster {cluster.name}"
    return unseal(bytes(cluster.sealed), cluster.key_id, _belongs_to(cluster), name).decode()


@receiver(resealing)
def spark_clusters_reseal(**_: Any) -> tuple[int, list[str]]:
    """Seal again what an earlier key of the portal has sealed; may be repeated. Returns how many, and those that do not
    open."""
    return rows_reseal(
        SparkCluster.objects.filter(sealed__isnull=False),
        lambda one: secret_seal(one, secret_of(one)),
        lambda one: f"Spark cluster {one.name}",
    )


def _belongs_to(cluster: SparkCluster) -> str:
    return f"spark_cluster:{cluster.pk}"
