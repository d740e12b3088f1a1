"""JSON as requests may carry it: bounded in size and depth, and without text that no database holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from apps.api.problems import Invalid, TooLarge
from yardmaster.errors import Problem

DEEPEST = 64


class JSONParser(BaseParser):
    """Refuses what is too large (413), malformed or too deep (400), and NUL or lone surrogates in any string (400)."""

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raw = stream.read(limit + 1)
        if len(raw) > limit:
            raise TooLarge(f"A request holds at most {limit} bytes of JSON.", remedy="Send less at once.")
        try:
            value = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"This is not valid JSON: {_short(error)}") from error
        _check(value, "", DEEPEST)
        return value


def _short(error: Exception) -> str:
    return "it is nested too deep." if isinstance(error, RecursionError) else str(error)[:200]


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number.")


def _check(value: Any, field: str, depth: int) -> None:
    if depth == 0:
        raise ParseError(f"This is nested deeper than {DEEPEST} levels.")
    if isinstance(value, str):
        _check_text(value, field)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, field)
            _check(item, f"{field}.{key}" if field else key, depth - 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, f"{field}.{index}" if field else str(index), depth - 1)


def _check_text(text: str, field: str) -> None:
    if "\x00" in text:
        raise Invalid([Problem(field, "null_character", "Text cannot hold a NUL character.", "Leave it out.")])
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = "Text cannot hold half a surrogate pair."
        raise Invalid([Problem(field, "lone_surrogate", message, "Send valid Unicode.")]) from error
