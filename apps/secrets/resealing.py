"""Sealing the values of another app's rows again, after the portal got another key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from apps.errors import DomainError
from apps.secrets.sealing import is_current


def rows_reseal(
    rows: QuerySet[Any], seal_again: Callable[[Any], None], called: Callable[[Any], str]
) -> tuple[int, list[str]]:
    """Seal again what an earlier key has sealed (`sealed` and `key_id` of these rows), one row at a time; may be
    repeated. `seal_again` puts the new values into a row, which is saved here. Returns how many, and those that do not
    open, as `called` names them."""
    done, broken = 0, []
    for pk, key in rows.order_by("pk").values_list("pk", "key_id").iterator():
        if is_current(key):
            continue
        with transaction.atomic():
            locked = rows.model._default_manager.select_for_update().filter(pk=pk, key_id=key).first()
            if locked is None:
                continue
            try:
                seal_again(locked)
            except DomainError as error:
                broken.append(f"{called(locked)}: {error}")
                continue
            locked.save(update_fields=["sealed", "key_id"])
            done += 1
    return done, broken
