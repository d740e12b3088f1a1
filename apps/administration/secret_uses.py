"""What still needs a secret: jobs that are not over, datasets in buckets, and data connections that it opens."""

from __future__ import annotations

from apps.connections.selectors import connections_using
from apps.datasets.registering import datasets_using
from apps.jobs.models import Job
from apps.secrets.models import Secret
from apps.secrets.selectors import jobs_using
from yardmaster.lifecycle.phases import FINAL

MOST_NAMED = 50


def users_of_secret(secret: Secret) -> list[str]:
    """In words, such as `job digits`."""
    over = [phase.value for phase in FINAL]
    running = Job.objects.for_lists().filter(pk__in=jobs_using(secret)).exclude(phase__in=over)
    datasets = [f"dataset {name}" for name in datasets_using(secret.pk)]
    connections = [f"data connection {name}" for name in connections_using(secret.namespace, secret.name)]
    return (
        datasets
        + connections
        + [f"job {name}" for name in running.order_by("pk").values_list("name", flat=True)[:MOST_NAMED]]
    )
