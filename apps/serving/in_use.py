"""Which ended jobs services refer to: the newest of each."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from django.db.models import Q, QuerySet
from django.dispatch import receiver

from apps.jobs.models import jobs_in_use
from apps.serving.models import Service


@receiver(jobs_in_use)
def _of_services(job_ids: Collection[uuid.UUID] | None = None, **_: Any) -> QuerySet[Service, uuid.UUID | None]:
    asked = Q(job__isnull=False) if job_ids is None else Q(job__in=job_ids)
    return Service.objects.filter(asked).values_list("job", flat=True)
