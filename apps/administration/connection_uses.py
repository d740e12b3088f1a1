"""What still needs a data connection: jobs that are not over."""

from __future__ import annotations

from apps.connections.models import DataConnection
from apps.jobs.models import Job
from yardmaster.lifecycle.phases import FINAL

MOST_NAMED = 50


def users_of_connection(connection: DataConnection) -> list[str]:
    """In words, such as `job digits`."""
    over = [phase.value for phase in FINAL]
    rows = Job.objects.for_lists().filter(namespace=connection.namespace_id, spec__connection__name=connection.name)
    found = rows.exclude(phase__in=over).order_by("pk").values_list("name", flat=True)
    return [f"job {name}" for name in found[:MOST_NAMED]]
