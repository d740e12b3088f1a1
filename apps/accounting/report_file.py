"""Reports as files. Not here: what stands in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.http import HttpResponse

from apps.api.csv_cells import cell, csv_bytes


def csv_response(name: str, rows: Iterable[Sequence[Any]]) -> HttpResponse:
    """`NAME.csv` to keep, a row per line, no cell of it a formula."""
    content = csv_bytes([[cell(value) for value in row] for row in rows])
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return HttpResponse(content, content_type="text/csv; charset=utf-8", headers=headers)
