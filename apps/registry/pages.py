"""The pages of models."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver

pages_urlpatterns: list[URLPattern | URLResolver] = []
