"""Where the portal fetches the datasets that it makes for jobs."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from portal import env

_ON, _OFF = ("on", "1", "true", "yes"), ("off", "0", "false", "no")


@dataclass(frozen=True)
class DatasetDownloads:
    """`mirror`: the folder that has all files by their names; empty: each comes from where its publisher has it."""

    allowed: bool
    mirror: str = ""


def dataset_downloads() -> DatasetDownloads:
    """As the variable says: `on`, `off`, or the address of a mirror. Raises `ImproperlyConfigured`."""
    chosen = env.text("YARDMASTER_DATASET_DOWNLOADS", "on")
    if chosen.lower() in _ON or chosen.lower() in _OFF:
        return DatasetDownloads(chosen.lower() in _ON)
    there = urlsplit(chosen)
    if there.scheme not in ("http", "https") or not there.hostname or "@" in there.netloc or there.query:
        message = "must be on, off, or the address of a mirror, such as https://host/folder."
        raise ImproperlyConfigured(f"YARDMASTER_DATASET_DOWNLOADS {message}")
    return DatasetDownloads(True, chosen.rstrip("/"))
