"""Audit events as a file: CSV for spreadsheets, JSON lines for programs. Streamed, so that memory stays flat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import close_old_connections
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse

from apps.administration.audit_selectors import addresses_hide, events_newest_first
from apps.api.csv_cells import cell, csv_bytes
from apps.audit.models import AuditEvent
from apps.uploads.delivery import stream_pieces

FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
COLUMNS = (
    "id", "at", "actor", "actor_name", "action", "subject", "namespace", "address", "agent", "count", "facts",
)  # fmt: skip


def exported(rows: QuerySet[AuditEvent], form: str, most: int) -> Iterator[bytes]:
    """The events, newest first, some hundred with each piece."""
    if form == "csv":
        yield csv_bytes([list(COLUMNS)])
    pages = events_newest_first(rows, most)
    while True:
        try:
            page = next(pages, None)
        finally:
            close_old_connections()  # each piece may be made in another thread, which has a connection of its own
        if page is None:
            return
        facts = [_facts(event) for event in addresses_hide(page)]
        if form == "csv":
            yield csv_bytes([[cell(one[name]) for name in COLUMNS] for one in facts])
        else:
            yield "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in facts).encode()


def export_response(request: HttpRequest, rows: QuerySet[AuditEvent], form: str) -> StreamingHttpResponse:
    """The events as a file to keep, without what of them is not the reader's to see (`events_visible`)."""
    pieces = stream_pieces(request, exported(rows, form, settings.YARDMASTER_AUDIT_EXPORT_ROWS))
    headers = {"Content-Disposition": f'attachment; filename="audit.{form}"'}
    return StreamingHttpResponse(pieces, content_type=FORMATS[form], headers=headers)


def _facts(event: AuditEvent) -> dict[str, Any]:
    return {
        "id": str(event.pk),
        "at": event.at.isoformat(),
        "actor": str(event.actor_id) if event.actor_id else None,
        "actor_name": event.actor_name,
        "action": event.action,
        "subject": event.subject,
        "namespace": str(event.namespace_id) if event.namespace_id else None,
        "address": event.address,
        "agent": event.agent,
        "count": event.count,
        "facts": event.facts,
    }
