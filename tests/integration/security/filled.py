"""Rows of any table with something in every column: for tests of who may reach them, not of what they mean."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import models
from django.utils import timezone

from yardmaster.ids import new_id

M = TypeVar("M", bound=models.Model)


def filled(kind: type[M], /, **known: Any) -> M:
    """A saved row. What is not given and has no default is filled by its column's kind."""
    given = {*known, *(f"{name}_id" for name in known)}
    values = {
        field.attname: _some(field)
        for field in kind._meta.concrete_fields
        if field.name not in given and field.attname not in given and _is_needed(field)
    }
    row = kind(**values, **known)
    row.save(force_insert=True)
    return row


def _is_needed(field: Any) -> bool:
    has_default = field.has_default() or getattr(field, "db_default", models.NOT_PROVIDED) is not models.NOT_PROVIDED
    made = isinstance(field, models.AutoField | models.GeneratedField) or getattr(field, "auto_now_add", False)
    return not (field.null or has_default or made or field.is_relation or (field.blank and field.empty_strings_allowed))


def _some(field: Any) -> Any:
    if isinstance(field, models.UUIDField):
        return new_id()
    if isinstance(field, models.DateTimeField):
        return timezone.now()
    if isinstance(field, models.DateField):
        return timezone.now().date()
    if isinstance(field, models.BinaryField):
        return b"x"
    if isinstance(field, models.BooleanField):
        return False
    if isinstance(field, models.IntegerField | models.DecimalField | models.FloatField):
        return 0
    if isinstance(field, models.JSONField):
        return {}
    if field.choices:
        return field.choices[0][0]
    return new_id().hex[-min(12, field.max_length or 12) :]
