"""What still needs a Spark cluster: jobs that are not over, sessions among them."""

from __future__ import annotations

from apps.jobs.models import Job, Reservation
from apps.spark.models import SparkCluster
from yardmaster.job.spec import Strategy
from yardmaster.lifecycle.phases import FINAL

MOST_NAMED = 50


def users_of_cluster(cluster: SparkCluster) -> list[str]:
    """In words, such as `job digits`."""
    over = [phase.value for phase in FINAL]
    rows = Job.objects.for_lists().filter(spec__spark__cluster=cluster.name).exclude(phase__in=over)
    return [f"job {name}" for name in rows.order_by("pk").values_list("name", flat=True)[:MOST_NAMED]]


def cores_held(clusters: list[SparkCluster]) -> dict[str, int]:
    """How many cores the jobs and sessions that were admitted hold of each of these, by its name."""
    found = dict.fromkeys((one.name for one in clusters), 0)
    names = {one.resource: one.name for one in clusters}
    of = (Strategy.SPARK.value, Strategy.SERVICE.value)
    held = Reservation.objects.filter(released_at__isnull=True, role__in=("driver", "worker"), job__strategy__in=of)
    for extended in held.exclude(extended={}).values_list("extended", flat=True):
        for resource, count in extended.items():
            if resource in names:
                found[names[resource]] += count
    return found
