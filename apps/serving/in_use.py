"""Which ended jobs services refer to: the newest of each."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet
from django.dispatch import receiver

from apps.jobs.models import jobs_in_use
from apps.serving.models import Service


@receiver(jobs_in_use)
def _of_services(**_: Any) -> QuerySet[Service, uuid.UUID | None]:
    return Service.objects.filter(job__isnull=False).values_list("job", flat=True)
