"""The ASGI application: pages and API by Django, WebSockets by Channels."""

import gc
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

from portal.one_thread import django_in_one_thread

http = django_in_one_thread()  # loads the apps, so it comes before anything that imports a model

from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import get_resolver

from apps.accounts.websocket_auth import TokenOrSession
from apps.jobs.consumers import websocket_urlpatterns as jobs
from apps.jobs.shell_sockets import websocket_urlpatterns as shells
from apps.logs.append_at_once import AppendAtOnce
from apps.logs.consumers import websocket_urlpatterns as logs
from apps.uploads.read_at_once import ReadAtOnce
from portal.body_limit import BodyLimit
from portal.rate_limit import RateLimit
from portal.refused_at_once import refused_at_once


class Portal(ProtocolTypeRouter):  # type: ignore[misc]  # Channels has no types
    """What `portal.bounded_head` asks before it begins a request."""

    refused_at_once = staticmethod(refused_at_once)


application = Portal(
    {
        "http": RateLimit(BodyLimit(AppendAtOnce(ReadAtOnce(http)))),
        "websocket": RateLimit(TokenOrSession(URLRouter([*jobs, *shells, *logs]))),
    }
)

get_resolver().reverse_dict  # noqa: B018  # loads every view now, not in the first request
gc.collect()
gc.freeze()  # what is loaded stays; to look through it for garbage again and again held up every request for 0.2 s
