"""JSON as requests may carry it: bounded in size, depth, values and digits, and without text that no database holds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from apps.errors import Invalid, TooLarge
from yardmaster.errors import Problem

DEEPEST = 64
MOST_VALUES = 400_000
"""Commas, colons and brackets: as many values at most, which take some 60 MiB. 20,000 files need half as many."""
MOST_DIGITS = 40


class JSONParser(BaseParser):
    """Refuses what is too large (413), and what is malformed, too deep, of too many values, or holds a NUL or a lone
    surrogate in any string (400)."""

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raw = stream.read(limit + 1)
        if len(raw) > limit:
            raise TooLarge(f"A request holds at most {limit} bytes of JSON.", remedy="Send less at once.")
        try:
            _check_count(raw)
            value = json.loads(
                raw.decode("utf-8"), parse_constant=_refuse_constant, parse_int=_whole, parse_float=_broken
            )
        except (ValueError, RecursionError) as error:
            raise ParseError(f"This is not valid JSON: {_short(error)}") from error
        check_value(value)
        return value


def check_value(value: Any) -> None:
    """Raises `Invalid` and `ParseError` for what no database holds, and what is nested too deep."""
    _check(value, "", DEEPEST)


def _short(error: Exception) -> str:
    return "it is nested too deeply." if isinstance(error, RecursionError) else str(error)[:200]


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number.")


def _check_count(raw: bytes) -> None:
    if sum(map(raw.count, (b",", b":", b"[", b"{"))) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values.")


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number has more than {MOST_DIGITS} digits.")
    return int(text)


def _broken(text: str) -> float:
    value = float(text)
    if value in (math.inf, -math.inf):
        raise ValueError("a number is too large.")
    return value


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
        raise Invalid([Problem(field, "null_character", "Text cannot hold a NUL character.", "Remove it.")])
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = "Text cannot hold half a surrogate pair."
        raise Invalid([Problem(field, "lone_surrogate", message, "Send valid Unicode.")]) from error
