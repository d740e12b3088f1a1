"""The secret of a cluster, encrypted as all secrets are. Only a task of a job that uses the cluster is given it."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.dispatch import receiver

from apps.errors import DomainError
from apps.secrets.sealing import is_current, seal, unseal
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
    done, broken = 0, []
    for pk, key in SparkCluster.objects.filter(sealed__isnull=False).order_by("pk").values_list("pk", "key_id"):
        if is_current(key):
            continue
        with transaction.atomic():
            locked = SparkCluster.objects.select_for_update().filter(pk=pk, key_id=key).first()
            if locked is None:
                continue
            try:
                secret_seal(locked, secret_of(locked))
            except DomainError as error:
                broken.append(f"Spark cluster {locked.name}: {error}")
                continue
            locked.save(update_fields=["sealed", "key_id"])
            done += 1
    return done, broken


def _belongs_to(cluster: SparkCluster) -> str:
    return f"spark_cluster:{cluster.pk}"
