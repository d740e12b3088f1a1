"""The API's description of itself, readable without signing in."""

from __future__ import annotations

from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.permissions import AllowAny


class SchemaView(SpectacularJSONAPIView):
    """This document."""

    permission_classes = [AllowAny]
    authentication_classes = []
