"""The ASGI application: pages and API by Django, WebSockets by Channels."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

from django.core.asgi import get_asgi_application

http = get_asgi_application()  # loads the apps, so it comes before anything that imports a model

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator

from apps.jobs.routing import websocket_urlpatterns as jobs
from apps.logs.routing import websocket_urlpatterns as logs

application = ProtocolTypeRouter(
    {"http": http, "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter([*jobs, *logs])))}
)
