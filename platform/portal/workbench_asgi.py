"""The second ASGI application: the sessions of the workbench, on origins of their own."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

import django

django.setup(set_prefix=False)

from django.conf import settings

from apps.workbench.admission import Notes, admit, enter
from apps.workbench.proxy.application import Workbench
from portal.callers import address_of

_notes = Notes()
application = Workbench(
    settings.YARDMASTER_WORKBENCH_ORIGINS,
    admit,
    enter,
    _notes.used,
    lost=_notes.lost,
    address_of=address_of,
    of_user=settings.YARDMASTER_WORKBENCH_CONNECTIONS,
)
