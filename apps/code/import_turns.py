"""Whose turn it is to have code fetched from Git: namespaces share the workers, however many imports one has."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import Count, IntegerField, OuterRef, Subquery
from django.db.models.functions import Coalesce

from apps.code.models import CodeImport


def import_in_turn(now: datetime) -> UUID | None:
    """The import that is taken up next: the oldest that is due of the namespace that has the fewest under way, in all
    workers. None: none is due, or others have all that are. Workers that choose at the same moment may choose the same
    one: its lease decides, and the others choose again."""
    open_ones = CodeImport.objects.filter(next_look_at__isnull=False)
    leased = open_ones.filter(namespace=OuterRef("namespace"), leased_until__gt=now).order_by()
    under_way = Subquery(leased.values("namespace").annotate(count=Count("pk")).values("count"))
    waiting = open_ones.filter(next_look_at__lte=now).exclude(leased_until__gt=now)
    counted = waiting.annotate(under_way=Coalesce(under_way, 0, output_field=IntegerField()))
    return counted.order_by("under_way", "next_look_at", "pk").values_list("pk", flat=True).first()
