"""The JSON of code."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.uploads.versioned.selectors import newest_of
from apps.uploads.versioned.serializers import CollectionSerializer, FileSerializer, VersionSerializer


class CodeVersionSerializer(VersionSerializer):
    """A version of code."""

    code = serializers.UUIDField(source="parent_id")


class CodeSerializer(CollectionSerializer):
    """Code with its newest version."""

    latest = serializers.SerializerMethodField()

    @extend_schema_field(CodeVersionSerializer(allow_null=True))
    def get_latest(self, code: Any) -> Any:
        newest = newest_of(code)
        return None if newest is None else CodeVersionSerializer(newest).data


class CodeFileSerializer(FileSerializer):
    """One file of a code version."""
