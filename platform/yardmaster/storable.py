"""Texts of others as databases and UTF-8 take them. Pure."""

from __future__ import annotations

from typing import Any


def storable(text: str) -> str:
    """Without what no database takes: NUL, and halves of surrogate pairs, which have no UTF-8."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def storable_json(value: Any) -> Any:
    """The same of every text in what was read from JSON."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [storable_json(one) for one in value]
    if isinstance(value, dict):
        return {storable(key): storable_json(one) for key, one in value.items()}
    return value
