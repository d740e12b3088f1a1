"""The second ASGI application: the sessions of the workbench, on origins of their own."""

from __future__ import annotations

import os
import uuid

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

import django

django.setup(set_prefix=False)

from django.conf import settings

from apps.workbench.proxy.admission import Admitted, Refusal
from apps.workbench.proxy.application import Workbench


async def _admit(session_id: uuid.UUID, cookie: str) -> Admitted:
    raise Refusal(404, "not_found", "No session here", f"There is no session {session_id}.")


async def _enter(session_id: uuid.UUID, ticket: str) -> str:
    raise Refusal(404, "not_found", "No session here", f"There is no session {session_id}.")


def _used(session_id: uuid.UUID) -> None:
    """No session yet."""


application = Workbench(
    settings.YARDMASTER_WORKBENCH, _admit, _enter, _used, of_user=settings.YARDMASTER_WORKBENCH_CONNECTIONS
)
