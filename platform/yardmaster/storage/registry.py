"""The object store that the setting `YARDMASTER_STORAGE` names:

    {"class": "yardmaster.storage.local.LocalStorage", "options": {"root": …}}

Not here: how settings are read (`components`), and any store.
"""

from __future__ import annotations

from yardmaster.components import component_from
from yardmaster.storage.base import Storage

SETTING = "YARDMASTER_STORAGE"


def storage_from(config: object) -> Storage:
    """Make the store. Raises `Misconfigured`."""
    made: Storage = component_from(
        SETTING, config, what="object store", example="yardmaster.storage.local.LocalStorage"
    )
    return made
