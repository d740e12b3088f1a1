"""Registering, changing, removing and checking Spark clusters. Every verb writes its audit event in its transaction;
none contains the secret. No master is connected to here: a worker looks at it (`worker`).

Not here: who may call it (the views and pages ask), and which jobs use a cluster (`apps.jobs.spark_clusters`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.changes import changes
from apps.audit.services import record
from apps.dispatch.messages import CHECK_SPARK, enqueue
from apps.errors import Conflict, Invalid
from apps.namespaces.models import Namespace
from apps.namespaces.named import namespaces_bounded
from apps.spark.models import CheckState, SparkCluster
from apps.spark.rules import problems_of
from apps.spark.sealed import secret_of, secret_seal
from yardmaster.errors import Problem
from yardmaster.quantity import some_of

MOST_CLUSTERS = 100
CHANGEABLE = (
    "master", "driver_address", "python", "most_executors", "most_cores", "most_memory", "most_cores_at_once",
    "everyone", "enabled",
)  # fmt: skip


def cluster_create(
    *, name: str, facts: Mapping[str, Any], namespaces: Iterable[Namespace] = (), actor: User
) -> SparkCluster:
    """Register a cluster, and look at it. `facts`: values of `CHANGEABLE`, and `secret`. Raises `Invalid`, `Conflict`
    where there are too many."""
    if found := list(problems_of(facts, name)):
        raise Invalid(found)
    now = timezone.now()
    plain = {field: facts[field] for field in CHANGEABLE if field in facts}
    row = SparkCluster(name=name, created_at=now, created_by=actor, changed_at=now, changed_by=actor, asked_at=now)
    for field, value in plain.items():
        setattr(row, field, value)
    secret_seal(row, facts.get("secret") or "")
    try:
        with transaction.atomic():
            if SparkCluster.objects.count() >= MOST_CLUSTERS:
                message = f"The portal can have at most {MOST_CLUSTERS} Spark clusters."
                raise Conflict(message, "too_many_spark_clusters", remedy="Remove a cluster first.")
            row.save(force_insert=True)
            row.namespaces.set(namespaces_bounded(namespaces, "A Spark cluster"))
            said = {**plain, "has_secret": row.has_secret, "namespaces": _slugs(row)}
            record(actor, "spark_cluster.create", f"spark_cluster:{row.pk}", name=name, **said)
            enqueue(CHECK_SPARK, row.pk)
    except IntegrityError as error:
        message, remedy = "A Spark cluster of this name exists.", "Choose another name, or change that cluster."
        raise Invalid([Problem("name", "unique", message, remedy, name)]) from error
    return row


def cluster_change(
    *, cluster: SparkCluster, facts: Mapping[str, Any], namespaces: Iterable[Namespace] | None = None, actor: User
) -> SparkCluster:
    """Change what `facts` name of `CHANGEABLE`, the `secret` (empty: none), and who may use it. Jobs that start later
    are told the new values. Raises `Invalid`."""
    if found := list(problems_of(facts)):
        raise Invalid(found)
    with transaction.atomic():
        row = SparkCluster.objects.select_for_update().get(pk=cluster.pk)
        before = {field: getattr(row, field) for field in CHANGEABLE} | {"namespaces": _slugs(row)}
        for field in CHANGEABLE:
            setattr(row, field, facts.get(field, before[field]))
        is_other_secret = facts.get("secret") is not None and facts["secret"] != secret_of_or_none(row)
        if is_other_secret:
            secret_seal(row, facts["secret"])
        if namespaces is not None:
            row.namespaces.set(namespaces_bounded(namespaces, "A Spark cluster"))
        after = {field: getattr(row, field) for field in CHANGEABLE} | {"namespaces": _slugs(row)}
        said = changes(before, after)
        row.changed_at, row.changed_by = timezone.now(), actor
        if "master" in said:
            _want_check(row)
        row.save()
        subject = f"spark_cluster:{row.pk}"
        if said:
            record(actor, "spark_cluster.change", subject, name=row.name, **said)
        if is_other_secret:
            record(actor, "spark_cluster.secret", subject, name=row.name, has_secret=row.has_secret)
    return row


def cluster_check(*, cluster: SparkCluster, actor: User) -> SparkCluster:
    """Have a worker look whether its master answers."""
    with transaction.atomic():
        row = SparkCluster.objects.select_for_update().get(pk=cluster.pk)
        _want_check(row)
        row.save(update_fields=["state", "problem", "asked_at"])
        record(actor, "spark_cluster.check", f"spark_cluster:{row.pk}", name=row.name, master=row.master)
    return row


def cluster_delete(*, cluster: SparkCluster, actor: User, used_by: Sequence[str] = ()) -> None:
    """Remove it. `used_by`: what still needs it, in words; then it is a conflict."""
    if used_by:
        raise Conflict(
            f"The Spark cluster {cluster.name} is still used by {some_of(used_by)}.",
            "spark_cluster_in_use",
            remedy="Wait until they have ended, or stop them. Turn the cluster off, so that no new jobs use it.",
        )
    with transaction.atomic():
        subject = f"spark_cluster:{cluster.pk}"
        if SparkCluster.objects.filter(pk=cluster.pk).delete()[0]:
            record(actor, "spark_cluster.delete", subject, name=cluster.name, master=cluster.master)


def secret_of_or_none(row: SparkCluster) -> str | None:
    """None where it does not open: then any other is a new one."""
    try:
        return secret_of(row)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is being replaced
        return None


def _want_check(row: SparkCluster) -> None:
    row.state, row.problem, row.asked_at = CheckState.CHECKING, "", timezone.now()
    enqueue(CHECK_SPARK, row.pk)


def _slugs(row: SparkCluster) -> list[str]:
    return sorted(row.namespaces.values_list("slug", flat=True))
