"""Addresses of the WebSockets of jobs."""

from django.urls import URLPattern, path

from apps.jobs.consumers import JobConsumer, JobsConsumer

websocket_urlpatterns: list[URLPattern] = [
    path("ws/jobs/", JobsConsumer.as_asgi()),
    path("ws/jobs/<uuid:job_id>/", JobConsumer.as_asgi()),
]
