"""The tables of code."""

from __future__ import annotations

from apps.code.models import Code, CodeVersion
from apps.uploads.models import Kind
from apps.uploads.versioned.shelf import Shelf

CODE = Shelf(Kind.CODE, "code", Code, CodeVersion)
