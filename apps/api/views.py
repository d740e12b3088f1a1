"""The API's description of itself."""

from __future__ import annotations

from functools import cache

from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, path
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.permissions import AllowAny
from rest_framework.request import Request


class SchemaView(SpectacularJSONAPIView):
    """This document. Made once: making it takes a third of a second, and anybody may ask."""

    permission_classes = [AllowAny]
    authentication_classes = []

    def _get_schema_response(self, request: Request) -> HttpResponse:
        return HttpResponse(_schema(), content_type="application/vnd.oai.openapi+json")


@cache
def _schema() -> bytes:
    document = SchemaView.generator_class().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return OpenApiJsonRenderer().render(document)


urlpatterns: list[URLPattern | URLResolver] = [
    path("schema/", SchemaView.as_view(), name="schema"),
]
