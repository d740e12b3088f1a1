"""What a namespace's storage is filled with, by kind. Reads only; the account itself is `storage_ledger`."""

from __future__ import annotations

from django.db.models import Sum

from apps.namespaces.models import Namespace
from apps.uploads.models import Kind, State, Upload


def storage_by_kind(namespace: Namespace) -> list[tuple[Kind, int]]:
    """Bytes of each kind that there is anything of, the most first. One query."""
    stored = Upload.objects.filter(namespace=namespace, state=State.COMPLETE, held__gt=0)
    rows = stored.values_list("kind").annotate(bytes=Sum("held")).order_by("-bytes")
    return [(Kind(kind), amount) for kind, amount in rows]
