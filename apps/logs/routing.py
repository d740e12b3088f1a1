from django.urls import URLPattern, path

from apps.logs.consumers import follow_logs

websocket_urlpatterns: list[URLPattern] = [path("ws/jobs/<uuid:id>/logs/", follow_logs)]  # type: ignore[arg-type]
