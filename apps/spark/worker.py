"""Checks of Spark clusters, as Celery's workers do them: does a master answer? A check may be done twice."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.utils import timezone

from apps.dispatch.messages import CHECK_SPARK, enqueue_now
from apps.spark.models import CheckState, SparkCluster
from yardmaster_runner.spark.probe import in_words, look_at_all

PATIENCE = 3.0
"""Seconds for each step, and each master."""
LOST = timedelta(minutes=1)
_LONGEST = 1_000


def spark_check(cluster_id: uuid.UUID) -> None:
    """Look at the master, and write what was found. What was changed meanwhile is looked at again."""
    row = SparkCluster.objects.filter(pk=cluster_id, state=CheckState.CHECKING).first()
    if row is None:
        return
    looks = look_at_all(row.master, PATIENCE)
    is_there = not looks[-1].problem
    state = CheckState.REACHABLE if is_there else CheckState.UNREACHABLE
    problem = "" if is_there else in_words(looks)[:_LONGEST]
    unchanged = SparkCluster.objects.filter(pk=cluster_id, asked_at=row.asked_at)
    unchanged.update(state=state, problem=problem, checked_at=timezone.now())


def spark_checks_sweep(now: datetime) -> None:
    """Wake checks whose message was lost."""
    rows = SparkCluster.objects.filter(state=CheckState.CHECKING, asked_at__lt=now - LOST)
    for cluster_id in rows.values_list("pk", flat=True):
        enqueue_now(CHECK_SPARK, cluster_id)
