"""Parts of pages of apps that know no accounting: where a namespace stands in its budget."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import template
from django.conf import settings
from django.utils import timezone

from apps.accounting.budgets import standing_of
from apps.namespaces.models import Namespace
from yardmaster.accounting.calendar import day_of, next_month

register = template.Library()


@register.inclusion_tag("accounting/budget_notice.html")
def budget_notice(namespace_id: UUID, slug: str) -> dict[str, Any]:
    """A banner where a level of the namespace's budget is reached; nothing where it has none."""
    now = timezone.now()
    found = standing_of(namespace_id, now)
    levels = settings.YARDMASTER_BUDGET_WARNINGS
    return {
        "slug": slug, "standing": found, "line": found.fullest,
        "is_near": bool(levels) and found.percent >= min(levels), "next_month": next_month(day_of(now)),
    }  # fmt: skip


@register.inclusion_tag("accounting/budget_card.html")
def budget_card(namespace: Namespace, is_staff: bool) -> dict[str, Any]:
    """The bounds of the namespace's budget and what is used of them."""
    return {"namespace": namespace, "is_staff": is_staff, "standing": standing_of(namespace, timezone.now())}
