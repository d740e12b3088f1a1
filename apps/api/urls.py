"""Addresses of what all of the API shares."""

from django.urls import URLPattern, URLResolver, path

from apps.api.views import SchemaView

urlpatterns: list[URLPattern | URLResolver] = [path("schema/", SchemaView.as_view(), name="schema")]
