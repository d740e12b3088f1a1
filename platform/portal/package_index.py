"""Where the packages come from that jobs ask for."""

from __future__ import annotations

import configparser
import os
import sys
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from portal import env

OFF = "off"
PYPI = "https://pypi.org/simple"


def packages() -> tuple[str, int, timedelta]:
    """Where packages come from that jobs ask for (empty: none are installed), the most bytes that those of one job may
    take when they are installed, and how long they are kept for other jobs after they were last used."""
    limit = env.size("YARDMASTER_PACKAGES_LIMIT", "8Gi", least=1 << 20)
    return index_url(), limit, timedelta(days=env.number("YARDMASTER_PACKAGES_KEPT", 30, least=1))


def index_url() -> str:
    """The address of the index. Unset: the one that pip uses on the portal's machine, else PyPI. Empty: none, as
    `YARDMASTER_PACKAGE_INDEX=off` says. Raises `ImproperlyConfigured`."""
    chosen = env.text("YARDMASTER_PACKAGE_INDEX")
    if chosen.lower() == OFF:
        return ""
    found = chosen or os.environ.get("PIP_INDEX_URL", "") or _of_pips_files() or PYPI
    if urlsplit(found).scheme not in ("http", "https") or not urlsplit(found).hostname:
        if not chosen:
            return PYPI
        raise ImproperlyConfigured(
            f"YARDMASTER_PACKAGE_INDEX={chosen!r} is no address of a package index: write https://host/simple, or off."
        )
    return found


def _of_pips_files() -> str:
    """As pip reads them: the environment's own over the user's over the machine's."""
    home, config = Path.home(), os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    places = [
        Path(sys.prefix, "pip.conf"), Path(config, "pip", "pip.conf"), Path(home, ".pip", "pip.conf"),
        Path("/etc/pip.conf"), Path("/etc/xdg/pip/pip.conf"),
    ]  # fmt: skip
    for place in places:
        reader = configparser.RawConfigParser()
        try:
            reader.read(place, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue
        for section in ("install", "global"):
            if found := reader.get(section, "index-url", fallback="").strip():
                return found
    return ""
