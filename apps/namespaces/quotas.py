"""The quota row that a new namespace begins with, and what the core makes of one. Changing one is a service; what is
used is a selector."""

from __future__ import annotations

from django.conf import settings

from apps.namespaces.models import Namespace, Quota
from yardmaster.queueing import ledger

QUANTITY_NAMES = {
    "cpu": ("CPU cores", ""),
    "memory": ("Memory", "bytes"),
    "gpus": ("GPUs", ""),
    "storage": ("Storage", "bytes"),
    "running_jobs": ("Concurrent jobs", ""),
}
"""What a quota bounds, in words, and its unit: `bytes`, or none for plain numbers."""


def default_quota_create(namespace: Namespace) -> Quota:
    """The namespace's quota row, made from the settings where it is absent."""
    quota, _ = Quota.objects.get_or_create(namespace=namespace, defaults=settings.YARDMASTER_DEFAULT_QUOTA)
    return quota


def limits_of(row: Quota) -> ledger.Quota:
    """A namespace's quota as the core knows it."""
    cpu = None if row.cpu is None else float(row.cpu)
    return ledger.Quota(cpu, row.memory, row.gpus, row.running_jobs, row.priority_ceiling, row.extended)
