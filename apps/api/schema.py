"""What the OpenAPI document says beyond the serializers: problems, `Idempotency-Key`, tags and credentials."""

from __future__ import annotations

from typing import Any, Literal

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from apps.api.idempotency import IdempotentPosts
from apps.api.problems import CONTENT_TYPE
from apps.api.serializers import StrictSerializer

_TEXT = {"type": "string"}
_PROBLEM = {
    "type": "object",
    "description": "What went wrong (RFC 9457). `code` is stable; `remedy` says what to do.",
    "required": ["type", "title", "status", "code", "detail", "remedy", "errors"],
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "code": _TEXT,
        "detail": _TEXT,
        "remedy": _TEXT,
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "code", "message", "remedy", "value"],
                "properties": dict.fromkeys(("field", "code", "message", "remedy", "value"), _TEXT),
            },
        },
    },
}


class Schema(AutoSchema):
    """Every operation answers errors as problems; those that take an `Idempotency-Key` say so."""

    def get_tags(self) -> list[str]:
        parts = [part for part in self.path.split("/") if part]
        return [parts[2]] if len(parts) > 2 else ["api"]

    def get_override_parameters(self) -> list[Any]:
        parameters = list(super().get_override_parameters())
        if self.method == "POST" and isinstance(self.view, IdempotentPosts):
            parameters.append(
                OpenApiParameter(
                    "Idempotency-Key",
                    OpenApiTypes.STR,
                    OpenApiParameter.HEADER,
                    description="1 to 200 printable characters. A repeat within 24 h gets the first answer again.",
                )
            )
        return parameters

    def _get_paginator(self) -> Any:
        """Lists that are asked for come in pages; those that another method answers with come whole."""
        return super()._get_paginator() if self.method == "GET" else None  # type: ignore[no-untyped-call]

    def _get_response_bodies(self, direction: Literal["request", "response"] = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        bodies.setdefault(
            "default",
            {
                "description": "An error (RFC 9457 problem details).",
                "content": {CONTENT_TYPE: {"schema": self._problem().ref}},
            },
        )
        return bodies

    def _map_basic_serializer(self, serializer: Any, direction: Literal["request", "response"]) -> Any:
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if direction == "request" and isinstance(serializer, StrictSerializer):
            schema["additionalProperties"] = False
        return schema

    def _problem(self) -> ResolvedComponent:
        component = ResolvedComponent(  # type: ignore[no-untyped-call]
            "ProblemDetails", ResolvedComponent.SCHEMA, _PROBLEM, "ProblemDetails"
        )
        self.registry.register_on_missing(component)
        return component


class PersonalTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "apps.accounts.authentication.PersonalTokenAuthentication"
    name = "personal_token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A personal token."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "apps.accounts.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}


class TaskTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "apps.jobs.state.task_auth.TaskTokenAuthentication"
    name = "task_token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "The token of a job's own tasks."}


class RememberedTaskTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The same credential, checked in another way: it defines nothing of its own."""

    target_class = "apps.logs.intake.RememberedTaskToken"
    name: list[str] = []

    def get_security_requirement(self, auto_schema: AutoSchema) -> dict[str, list[Any]]:
        return {TaskTokenScheme.name: []}

    def get_security_definition(self, auto_schema: AutoSchema) -> list[dict[str, Any]]:
        return []
