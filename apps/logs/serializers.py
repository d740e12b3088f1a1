"""What requests about logs may say, and how answers look. Lines themselves are written by hand: there are many."""

from __future__ import annotations

import json
import re
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from yardmaster.job.spec import Role
from yardmaster.logs.keys import LINE_LIMIT, WRITER_LIMIT
from yardmaster.logs.levels import Level

MOST_TASKS = 10_000
MOST_LINES = 10_000
MOST_MATCHES = 1_000
LONGEST_OPEN = 20_000
"""Characters, with the colours of each: the runner sends a thousand without them."""
LONGEST_PLACE = 200_000
_ONE_LINE = re.compile(rf"({'|'.join(role.value for role in Role)})-(\d{{1,4}}):(\d{{1,15}})", re.ASCII)
LEVELS = {level.name.lower(): level for level in Level}


class QueryOf(serializers.Serializer[Any]):
    """The query part of an address."""

    @classmethod
    def of(cls, request: Request) -> dict[str, Any]:
        """The checked values. Raises the problem `invalid`."""
        query = cls(data=request.query_params)
        query.is_valid(raise_exception=True)
        return dict(query.validated_data)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        values: dict[str, Any] = super().to_internal_value(data)
        if values.get("role") is not None:
            values["role"] = Role(values["role"])
        return values


def _line_number(**options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=0, max_value=LINE_LIMIT, **options)


def _index(**options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=0, max_value=MOST_TASKS - 1, **options)


class StreamQuery(QueryOf):
    role = serializers.ChoiceField([role.value for role in Role])
    index = _index()


class WriterQuery(StreamQuery):
    writer = serializers.IntegerField(
        min_value=0, max_value=WRITER_LIMIT, default=0, help_text="Who numbers the lines, by chance; 0: not said."
    )


class WriteQuery(WriterQuery):
    first_line = _line_number()
    lines = serializers.IntegerField(min_value=0, max_value=1 << 23)
    tail = serializers.IntegerField(
        min_value=-1,
        max_value=1,
        default=-1,
        help_text="What a full log does with new lines: 1 keeps some, 0 keeps none, -1 drops them.",
    )


class GapQuery(WriterQuery):
    first_line = _line_number()


class GapBody(serializers.Serializer[Any]):
    lines = _line_number()
    bytes = _line_number()


class EndQuery(StreamQuery):
    lines = _line_number()


class OpenLineQuery(StreamQuery):
    line = _line_number()


class OpenLineBody(serializers.Serializer[Any]):
    text = serializers.CharField(
        max_length=LONGEST_OPEN, allow_blank=True, trim_whitespace=False, help_text="Its latest state; empty: none."
    )


class ShownLine(serializers.Serializer[Any]):
    line = serializers.IntegerField()


class LogFull(serializers.Serializer[Any]):
    cause = serializers.CharField(help_text="`log_limit`, `namespace_limit`, `storage_quota` or `log_quota`.")
    bound = serializers.IntegerField(help_text="Bytes.")
    detail = serializers.CharField(help_text="The reason as text, with the remedy.")


class NextLine(serializers.Serializer[Any]):
    next_line = serializers.IntegerField()
    full = LogFull(required=False, help_text="Why lines are dropped.")


class WritePosition(serializers.Serializer[Any]):
    next_line = serializers.IntegerField()
    mine = serializers.IntegerField(allow_null=True)


class WhichLogs(QueryOf):
    """Which streams: of the newest attempt and of all tasks, unless said otherwise."""

    attempt = serializers.IntegerField(min_value=1, max_value=1 << 31, required=False)
    role = serializers.ChoiceField([role.value for role in Role], required=False)
    index = _index(required=False, default=0)


@extend_schema_field({"type": "string", "example": '{"worker-0": 120}'})
class LineNumbers(serializers.Field[Any, Any, Any, Any]):
    """A JSON object in an address: line numbers by task, `{"worker-0": 120}`."""

    default_error_messages = {"shape": 'Expected a JSON object of line numbers by task, such as {{"worker-0": 120}}.'}

    def to_internal_value(self, data: Any) -> dict[str, int]:
        try:
            found = json.loads(data) if isinstance(data, str) and len(data) <= LONGEST_PLACE else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not all(
            type(one) is int and 0 <= one <= LINE_LIMIT for one in found.values()
        ):
            self.fail("shape")
        return found


@extend_schema_field({"type": "string", "example": "worker-0:120"})
class OneLine(serializers.Field[Any, Any, Any, Any]):
    """One line of one task in an address: `worker-0:120`."""

    default_error_messages = {"shape": "Expected a task and a line number, such as worker-0:120."}

    def to_internal_value(self, data: Any) -> tuple[Role, int, int]:
        found = _ONE_LINE.fullmatch(data) if isinstance(data, str) else None
        if found is None:
            self.fail("shape")
        return Role(found[1]), int(found[2]), int(found[3])


class LinesQuery(WhichLogs):
    cursor = serializers.CharField(
        required=False, max_length=LONGEST_PLACE, help_text="`next` of the previous response."
    )
    after = LineNumbers(required=False, help_text="Without a role: from these lines on; else from the first.")
    before = LineNumbers(required=False, help_text="Without a role: the `limit` lines before these, by time.")
    around = OneLine(required=False, help_text="Without a role: the lines around this one, `worker-0:120`.")
    limit = serializers.IntegerField(min_value=1, max_value=MOST_LINES, default=1000)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields: dict[str, Any] = super().get_fields()
        # `from` is a word of Python's own, so it cannot be an attribute.
        fields["from"] = serializers.IntegerField(
            min_value=-LINE_LIMIT,
            max_value=LINE_LIMIT,
            required=False,
            default=0,
            help_text="The first line. A negative number counts from the end (of all tasks together, without a role).",
        )
        return fields


class SearchQuery(WhichLogs):
    q = serializers.CharField(required=False, default="", trim_whitespace=False, help_text="The text to look for.")
    regex = serializers.BooleanField(default=False, help_text="`q` is a regular expression, for one line at a time.")
    case = serializers.BooleanField(default=False, help_text="Match case.")
    level = serializers.ChoiceField(list(LEVELS), required=False, help_text="Lines of this level or above.")
    limit = serializers.IntegerField(min_value=1, max_value=MOST_MATCHES, default=100)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields: dict[str, Any] = super().get_fields()
        fields["from"] = serializers.CharField(
            required=False, max_length=100, help_text="A line number, or `next` of the previous response."
        )
        return fields


class StreamGap(serializers.Serializer[Any]):
    first_line = serializers.IntegerField()
    lines = serializers.IntegerField()
    bytes = serializers.IntegerField()
    cause = serializers.CharField(help_text="`lost`, `log_limit`, `namespace_limit`, `storage_quota` or `log_quota`.")
    detail = serializers.CharField(help_text="Why the lines are missing, as text, with the remedy.")


class GapAnswer(StreamGap):
    role = serializers.CharField()
    index = serializers.IntegerField()


class StreamAnswer(serializers.Serializer[Any]):
    attempt = serializers.IntegerField()
    role = serializers.CharField()
    index = serializers.IntegerField()
    lines = serializers.IntegerField()
    bytes = serializers.IntegerField()
    ended = serializers.BooleanField()
    gaps = StreamGap(many=True)


class StreamsAnswer(serializers.Serializer[Any]):
    streams = StreamAnswer(many=True)


class LineAnswer(serializers.Serializer[Any]):
    n = serializers.IntegerField(help_text="The line's number in its stream, from 0.")
    t = serializers.IntegerField(help_text="Unix milliseconds at which it was read.")
    text = serializers.CharField()
    role = serializers.CharField()
    index = serializers.IntegerField()


class LinesAnswer(serializers.Serializer[Any]):
    lines = LineAnswer(many=True)
    start = serializers.DictField(child=serializers.IntegerField(), help_text="The page's first line, by task.")
    end = serializers.DictField(child=serializers.IntegerField(), help_text="The line after its last, by task.")
    next = serializers.JSONField(help_text="Where to read on: a line number, or a cursor where no role was given.")
    ended = serializers.BooleanField(help_text="The tasks have ended and these are their last lines.")
    gaps = GapAnswer(many=True)


class SearchAnswer(serializers.Serializer[Any]):
    matches = LineAnswer(many=True)
    next = serializers.CharField(allow_null=True, help_text="Where to search on; null when everything was looked at.")


class LinePosition(serializers.Serializer[Any]):
    role = serializers.CharField()
    index = serializers.IntegerField()
    n = serializers.IntegerField()
    t = serializers.IntegerField()


class LevelsAnswer(serializers.Serializer[Any]):
    errors = serializers.IntegerField()  # type: ignore[assignment]  # a field named as DRF's own property
    warnings = serializers.IntegerField()
    lines = serializers.IntegerField(help_text="How many lines were searched. Ask again if it is less than `of`.")
    of = serializers.IntegerField(help_text="How many lines there are.")
    first_error = LinePosition(allow_null=True, help_text="By time; the first for sure once all lines were looked at.")
