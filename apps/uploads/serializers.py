"""The JSON of uploads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.problems import problem_of
from apps.api.serializers import StrictSerializer
from apps.errors import error_from_json
from apps.uploads.manifest import FILES_AT_ONCE, LARGEST_COUNT, MAX_FILE_SIZE, PARTS_AT_ONCE
from apps.uploads.models import Kind, State, Upload
from apps.uploads.part_addresses import SignedPart, WantedPart
from apps.uploads.selectors import expires_at, files_progress
from yardmaster.storage.base import MAX_PARTS
from yardmaster.storage.file_list import ListedFile
from yardmaster.storage.paths import MAX_PATH_BYTES

_FILE = {
    "type": "object",
    "required": ["path", "size"],
    "additionalProperties": False,
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": MAX_PATH_BYTES},
        "size": {"type": "integer", "minimum": 0, "maximum": MAX_FILE_SIZE},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}(-[0-9]{1,5})?$"},
    },
}


@extend_schema_field({"type": "array", "items": _FILE, "minItems": 1, "maxItems": FILES_AT_ONCE})
class DeclaredFilesField(serializers.Field[Any, Any, Any, Any]):
    """The files as their sender announces them. By hand, since a nested serializer takes seconds for 20,000."""

    default_error_messages = {
        "shape": 'Expected a list of files, such as {{"path": "a.csv", "size": 12}}.',
        "entry": 'Expected "path" (text), "size" (a whole number) and perhaps "sha256" (text), and nothing else.',
    }

    def to_internal_value(self, data: Any) -> list[ListedFile]:
        if not isinstance(data, list):
            self.fail("shape")
        files = []
        for index, entry in enumerate(data):
            file = listed_file(entry)
            if file is None:
                raise serializers.ValidationError({str(index): [self.error_messages["entry"]]})
            files.append(file)
        return files


def listed_file(entry: object) -> ListedFile | None:
    """The file that this entry announces; None: it announces none."""
    if isinstance(entry, ListedFile):
        return entry
    if (
        isinstance(entry, dict)
        and {"path", "size"} <= entry.keys() <= {"path", "size", "sha256"}
        and isinstance(entry["path"], str)
        and type(entry["size"]) is int
        and isinstance(entry.get("sha256", ""), str)
    ):
        return ListedFile(entry["path"], entry["size"], entry.get("sha256", ""))
    return None


class NewUploadSerializer(StrictSerializer):
    """What is to be uploaded. Without `namespace`: into your own."""

    namespace = serializers.CharField(required=False, max_length=63)
    kind = serializers.ChoiceField(choices=[Kind.DATASET, Kind.CODE])
    files = DeclaredFilesField()


class MoreFilesSerializer(StrictSerializer):
    """Files that follow those that were announced, in the order of their paths (of the UTF-8 bytes). `after` is how
    many were announced before: a request that is repeated changes nothing."""

    after = serializers.IntegerField(min_value=1, max_value=LARGEST_COUNT)
    files = DeclaredFilesField()


class WhichFilesSerializer(serializers.Serializer[Any]):
    """Which page of an upload's files."""

    first = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=LARGEST_COUNT, help_text="The number of its first file."
    )


class UploadProblemSerializer(serializers.Serializer[Any]):
    """Why the last `complete/` did not succeed, as the problem that it was."""

    status = serializers.SerializerMethodField()
    code = serializers.CharField()
    detail = serializers.CharField()
    remedy = serializers.CharField()
    errors: Any = serializers.ListField(child=serializers.DictField(child=serializers.CharField()))

    def get_status(self, kept: dict[str, Any]) -> int:
        problem = problem_of(error_from_json(kept))
        return 500 if problem is None else problem.status


class UploadSummarySerializer(serializers.Serializer[Upload]):
    """An upload without its files."""

    id = serializers.UUIDField()
    namespace = serializers.UUIDField(source="namespace_id")
    kind = serializers.ChoiceField(choices=Kind.choices)
    state = serializers.ChoiceField(choices=State.choices)
    part_size = serializers.IntegerField(help_text="Bytes of every part but a file's last.")
    file_count = serializers.IntegerField()
    size = serializers.IntegerField(source="held", help_text="Bytes that it holds of the namespace's storage quota.")
    bytes_checked = serializers.IntegerField(help_text="How far `complete/` has come.")
    problem = UploadProblemSerializer(allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.SerializerMethodField()

    @extend_schema_field(serializers.DateTimeField())
    def get_expires_at(self, upload: Upload) -> Any:
        return serializers.DateTimeField().to_representation(expires_at(upload))


class FileProgressSerializer(serializers.Serializer[Any]):
    """One file, and which of its parts have arrived."""

    index = serializers.IntegerField()
    path = serializers.CharField()
    size = serializers.IntegerField()
    parts = serializers.IntegerField(help_text="How many parts it has; an empty file has none.")
    done = serializers.ListField(child=serializers.IntegerField())


class UploadSerializer(UploadSummarySerializer):
    """An upload with all that is needed to continue with it."""

    files = serializers.SerializerMethodField(
        help_text=f"Its files; none where it has more than {FILES_AT_ONCE}: its `files/` address has those by page."
    )

    @extend_schema_field(FileProgressSerializer(many=True))
    def get_files(self, upload: Upload) -> list[dict[str, Any]]:
        if upload.file_count > FILES_AT_ONCE or self.context.get("without_files"):
            return []
        return [vars(file) for file in files_progress(upload)]


class FilesProgressSerializer(serializers.Serializer[Any]):
    """Some files of an upload, in the order in which they were announced."""

    next = serializers.IntegerField(allow_null=True, help_text="The number of the file that follows (`first`).")
    results = FileProgressSerializer(many=True)


_PART = {
    "type": "object",
    "required": ["file", "part", "sha256"],
    "additionalProperties": False,
    "properties": {
        "file": {"type": "integer", "minimum": 0, "maximum": LARGEST_COUNT},
        "part": {"type": "integer", "minimum": 1, "maximum": MAX_PARTS},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    },
}
_SHA256 = re.compile(r"[0-9a-f]{64}")


@extend_schema_field({"type": "array", "items": _PART, "minItems": 1, "maxItems": PARTS_AT_ONCE})
class WantedPartsField(serializers.Field[Any, Any, Any, Any]):
    """The parts that are to be sent. By hand, like the files: there may be a thousand."""

    default_error_messages = {
        "shape": 'Expected a list of parts, such as {{"file": 0, "part": 1, "sha256": "…"}}.',
        "entry": 'Expected "file" and "part" (whole numbers, files from 0, parts from 1) and "sha256" (64 lower-case '
        "hexadecimal digits), and nothing else.",
    }

    def to_internal_value(self, data: Any) -> list[WantedPart]:
        if not isinstance(data, list):
            self.fail("shape")
        wrong = next((index for index, entry in enumerate(data) if not _is_wanted_part(entry)), None)
        if wrong is not None:
            raise serializers.ValidationError({str(wrong): [self.error_messages["entry"]]})
        return [WantedPart(**entry, said_in=f"parts.{index}") for index, entry in enumerate(data)]


def _is_wanted_part(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and entry.keys() == {"file", "part", "sha256"}
        and type(entry["file"]) is int
        and type(entry["part"]) is int
        and isinstance(entry["sha256"], str)
        and _SHA256.fullmatch(entry["sha256"]) is not None
    )


class WantedPartsSerializer(StrictSerializer):
    """Which parts are to be sent, of one file or of many."""

    parts = WantedPartsField()


class SignedPartSerializer(serializers.Serializer[SignedPart]):
    """The request that sends a part, to be made exactly so."""

    file = serializers.IntegerField()
    part = serializers.IntegerField()
    method = serializers.CharField(source="request.method")
    url = serializers.URLField(source="request.url")
    headers = serializers.DictField(source="request.headers", child=serializers.CharField())


class SignedPartsSerializer(serializers.Serializer[Any]):
    """Good for a quarter of an hour, without any other credential."""

    urls = SignedPartSerializer(many=True)


def signed_parts_json(signed: Iterable[SignedPart]) -> dict[str, Any]:
    """As `SignedPartsSerializer` describes it; by hand, since there may be a thousand."""
    return {
        "urls": [
            {
                "file": one.file,
                "part": one.part,
                "method": one.request.method,
                "url": one.request.url,
                "headers": dict(one.request.headers),
            }
            for one in signed
        ]
    }


class CompletionSerializer(StrictSerializer):
    """`unpack`: the upload is one archive (ZIP or tar, also compressed), which is extracted."""

    unpack = serializers.BooleanField(required=False, default=False)
