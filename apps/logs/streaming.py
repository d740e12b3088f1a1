"""Answers that are longer than memory, piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import suppress

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse


def streamed(request: HttpRequest, pieces: Iterator[bytes], content_type: str) -> StreamingHttpResponse:
    """The pieces as they are asked for. Under ASGI Django would gather all of a plain iterator first: there each piece
    is made in a thread, so that the disk holds up nobody else."""
    content = _in_threads(pieces) if isinstance(request, ASGIRequest) else pieces
    return StreamingHttpResponse(content, content_type=content_type)


async def _in_threads(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    try:
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece
    finally:
        if isinstance(pieces, Generator):
            with suppress(ValueError):  # cut off while a thread still makes a piece: it closes itself when that is done
                pieces.close()
