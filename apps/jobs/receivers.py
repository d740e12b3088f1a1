"""What other apps ask of jobs through signals."""

from __future__ import annotations

import uuid
from typing import Any

from django.dispatch import receiver

from apps.jobs.selectors import versions_in_use
from apps.uploads.signals import versions_deleting


@receiver(versions_deleting)
def _needed_by_unfinished_jobs(*, version_ids: set[uuid.UUID], **_: Any) -> set[uuid.UUID]:
    return versions_in_use(version_ids)
