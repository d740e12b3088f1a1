"""Serializers shared by every endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from yardmaster.quantity import NotAQuantity, parse_memory


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses keys that it does not know, by name: a mistyped option must not be taken for an absent one."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = [key for key in data if key not in self.fields] if isinstance(data, Mapping) else []
        if unknown:
            known = ", ".join(name for name, field in self.fields.items() if not field.read_only)
            refusal = serializers.ErrorDetail(f"Unknown value. Use one of: {known}.", "unknown")
            raise serializers.ValidationError({str(key)[:100]: [refusal] for key in unknown})
        return super().to_internal_value(data)


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class SizeField(serializers.Field[Any, Any, Any, Any]):
    """Bytes, as a number or as people write them (`100Gi`)."""

    def to_internal_value(self, data: Any) -> int:
        try:
            return parse_memory(data)
        except NotAQuantity as error:
            raise serializers.ValidationError(str(error).capitalize() + ".") from error

    def to_representation(self, value: Any) -> Any:
        return value
