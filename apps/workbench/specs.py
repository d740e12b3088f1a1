"""The job that runs a session. Pure but for the settings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings

from apps.workbench.models import Kind, WorkbenchSession
from apps.workbench.spark import NO_SPARK, Spark
from yardmaster.job.spec import Option, Resources, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec import Role as TaskRole
from yardmaster_runner.spark.for_notebooks import CORES, EXECUTORS, MEMORY

RESTARTS = 3
"""How often a program that failed is started again."""
GRACE = {
    Kind.TENSORBOARD.value: timedelta(seconds=5),
    Kind.SPARK_HISTORY.value: timedelta(seconds=5),
    Kind.JUPYTER.value: timedelta(seconds=20),
}
"""Jupyter has kernels and terminals to end."""


def spec_of(
    session: WorkbenchSession,
    name: str,
    resources: Resources,
    requirements: Sequence[str] = (),
    spark: Spark = NO_SPARK,
) -> TrainingSpec:
    """One task with a port, which never ends by itself. `name` is that of the job."""
    return TrainingSpec(
        name=name[:100],
        strategy=Strategy.SERVICE,
        roles={TaskRole.WORKER: RoleSpec(1, resources)},
        code_version=None,
        entry_point="",
        program=session.kind,
        options={**_options(session), **_of_spark(spark, resources)},
        spark=spark.elsewhere,
        retries=RESTARTS,
        grace_period=GRACE[session.kind],
        reclaim_delay=timedelta(0),
        requirements=tuple(requirements),
    )


def _options(session: WorkbenchSession) -> dict[str, Option]:
    if session.kind == Kind.JUPYTER:
        return {"session": str(session.pk), "owner": str(session.owner_id), "portal": settings.PUBLIC_URL}
    return {"session": str(session.pk), "bytes": settings.YARDMASTER_WORKBENCH["EVENT_BYTES"]}


def _of_spark(spark: Spark, resources: Resources) -> dict[str, Option]:
    """Of executors that share what the session has."""
    if not spark.executors or spark.cluster:
        return {}
    return {EXECUTORS: spark.executors, CORES: int(resources.cpu), MEMORY: resources.memory}
