"""Administrators see all namespaces; that they read in one of others is recorded."""

from __future__ import annotations

from uuid import UUID

from apps.accounts.models import User
from apps.audit.services import reading_record
from apps.namespaces.models import Membership, Namespace


def reading_note(reader: User, noun: str, subject_id: UUID, namespace: Namespace) -> None:
    """Record that this user has read something of the namespace, where they may only as an administrator. One row per
    thing and hour; may be repeated."""
    if not reader.is_staff or namespace.owner_id == reader.pk:
        return
    members = Membership.objects.filter(user=reader, namespace=namespace)
    reading_record(reader, noun, subject_id, namespace, namespace.slug, unless=members.exists)
