"""Where a session is reached by browsers, on the workbench's origin."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from urllib.parse import urlencode

from django.conf import settings

from apps.workbench.proxy.application import BEGIN, ENTER
from apps.workbench.proxy.origins import Origins, prefix_of
from yardmaster_runner.workbench.opening import PATH as OPEN_VERSION


def origin_of(session_id: uuid.UUID) -> str:
    """`http://0193….localhost:8081`."""
    origins: Origins = settings.YARDMASTER_WORKBENCH_ORIGINS
    return origins.of(session_id)


def path_below(session_id: uuid.UUID, wanted: str | None) -> str:
    """The wanted path where it is one below the session's own; else the session's first page."""
    prefix = prefix_of(session_id)
    is_below = wanted is not None and wanted.startswith(prefix) and "/../" not in wanted and len(wanted) <= 2000
    return wanted if is_below and wanted else prefix


def version_path(session_id: uuid.UUID, form: Mapping[str, str]) -> str | None:
    """Where a Jupyter opens the version that a form names: its ID in `version`, its `noun`, and what it is called. None
    where it names none."""
    if not form.get("version"):
        return None
    wanted = {"kind": form.get("noun", ""), "version": form["version"], "name": form.get("name", "")[:200]}
    return f"{prefix_of(session_id)}{OPEN_VERSION}?{urlencode(wanted)}"


def begin_address(session_id: uuid.UUID, next_path: str) -> str:
    """Where a browser begins to enter: it comes back to the portal with the digest of what it is known by there."""
    return f"{origin_of(session_id)}{BEGIN}?{urlencode({'next': next_path})}"


def enter_address(session_id: uuid.UUID, ticket: str, next_path: str) -> str:
    """Where a ticket is exchanged."""
    return f"{origin_of(session_id)}{ENTER}?{urlencode({'ticket': ticket, 'next': next_path})}"
