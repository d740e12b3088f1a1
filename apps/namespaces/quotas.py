"""The quota row that a new namespace begins with. Changing one is a service; what is used is a selector."""

from __future__ import annotations

from django.conf import settings

from apps.namespaces.models import Namespace, Quota


def default_quota_create(namespace: Namespace) -> Quota:
    """The namespace's quota row, made from the settings where it is absent."""
    quota, _ = Quota.objects.get_or_create(namespace=namespace, defaults=settings.YARDMASTER_DEFAULT_QUOTA)
    return quota
