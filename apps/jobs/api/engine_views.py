"""The API of engines."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.jobs.api.detail_serializers import EnginesSerializer
from apps.jobs.engines.listing import engines_with_quotas


class EnginesView(ApiView):
    """Every engine, its capacity, and whether you may launch on it."""

    scope = "jobs"
    pagination_class = None

    @extend_schema(responses=EnginesSerializer)
    def get(self, request: Request) -> Response:
        return Response(EnginesSerializer({"results": engines_with_quotas(self.user)}).data)
