"""The notice to all, as a banner on every page: `{% notice_banner %}`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django import template
from django.db import DatabaseError
from django.utils import timezone

from apps.accounts.models import User
from apps.notifications.broadcasts import broadcast_for

register = template.Library()
log = logging.getLogger(__name__)


@register.inclusion_tag("notifications/banner.html", takes_context=True)
def notice_banner(context: Mapping[str, Any]) -> dict[str, Any]:
    """What the reader is to be told now; nothing on pages without a request (errors), or where the database fails: a
    banner must not take the page with it."""
    request = context.get("request")
    if request is None or getattr(request, "user", None) is None:
        return {}
    user = request.user if isinstance(request.user, User) else None
    try:
        found = broadcast_for(user, timezone.now())
    except DatabaseError:
        log.exception("The notice to all could not be read")
        return {}
    return {"notice": found, "may_hide": user is not None, "next": request.get_full_path()}
