"""What still needs a secret: jobs that are not over, for a deletion."""

from __future__ import annotations

from apps.jobs.models import Job
from apps.secrets.models import Secret
from apps.secrets.selectors import jobs_using
from yardmaster.lifecycle.phases import FINAL

MOST_NAMED = 50


def users_of_secret(secret: Secret) -> list[str]:
    """In words, such as `job digits`."""
    over = [phase.value for phase in FINAL]
    running = Job.objects.for_lists().filter(pk__in=jobs_using(secret)).exclude(phase__in=over)
    return [f"job {name}" for name in running.order_by("pk").values_list("name", flat=True)[:MOST_NAMED]]
