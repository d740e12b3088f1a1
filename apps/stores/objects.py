"""The portal's object store, as the settings name it."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from yardmaster.storage.base import Storage


@cache
def storage() -> Storage:
    """The store of `YARDMASTER_STORAGE`: `{"class": dotted path, "options": keyword arguments}`."""
    chosen: dict[str, Any] = settings.YARDMASTER_STORAGE
    return cast(Storage, import_string(chosen["class"])(**chosen["options"]))


def _forget(*, setting: str, **rest: Any) -> None:
    if setting == "YARDMASTER_STORAGE":
        storage.cache_clear()


setting_changed.connect(_forget)
