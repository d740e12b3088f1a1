"""Serving the addresses of a store that has no server of its own: GET of an object, whole or a range of it, PUT of a
part. The signature is all they need. Also many files as one zip (`zip_stream`).

What is served was uploaded by people, so nothing of it may act on the portal's origin: it is an attachment, is not
sniffed, and runs in a sandbox. Memory stays flat whatever the size.
"""

from __future__ import annotations

import asyncio
import mimetypes
import re
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.urls import URLPattern, URLResolver, path
from django.utils.http import content_disposition_header, http_date, parse_etags, quote_etag
from django.views.decorators.csrf import csrf_exempt

from apps.api.problems import CONTENT_TYPE, ApiProblem, body_of, problem_of
from apps.errors import DomainError, NotFound, TooLarge
from apps.stores import storage
from apps.uploads.selectors import StoredFile
from apps.uploads.zip_stream import zip_chunks
from yardmaster.errors import YardmasterError
from yardmaster.storage.base import (
    CHUNK,
    AddressRefused,
    ChecksumMismatch,
    ObjectMissing,
    ObjectStat,
    PartsRefused,
    PortalServed,
    UploadMissing,
    read_chunks,
)

HARMLESS = {"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "text/plain", "application/json"}
"""Types that browsers show without running anything; all others are delivered as plain bytes."""


def content_type_of(path: str) -> str:
    """By its name: a harmless type, or empty for plain bytes."""
    guessed = mimetypes.guess_type(path)[0] or ""
    return guessed if guessed in HARMLESS else ""


LARGE_ARCHIVE = 1 << 30
"""Bytes of a version from which on its page names the command that downloads it, beside the ZIP."""
_RANGE = re.compile(r"bytes=\s*([0-9]{0,18})-([0-9]{0,18})\s*")


class RangeRefused(ValueError):
    """The range lies outside the object (416)."""


@dataclass(frozen=True)
class ByteRange:
    """`length` bytes from `start`."""

    start: int
    length: int


def parse_range(header: str, size: int) -> ByteRange | None:
    """The range that the header asks for (RFC 9110), within `size`; None: the whole. Raises `RangeRefused`.

    Several ranges at once are answered with the whole, which the RFC allows: no client here needs them, and a hundred
    overlapping ones would be an attack.
    """
    found = _RANGE.fullmatch(header)
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:  # the last bytes
        length = min(int(found[2]), size)
        if length == 0:
            raise RangeRefused(header)
        return ByteRange(size - length, length)
    start, last = int(found[1]), int(found[2]) if found[2] else size - 1
    if found[2] and last < start:
        return None  # not a range at all
    if start >= size:
        raise RangeRefused(header)
    return ByteRange(start, min(last, size - 1) - start + 1)


def file_chunks(file: StoredFile) -> Iterator[bytes]:
    """The file's bytes, piece by piece, segment after segment."""
    for key in file.keys:
        with storage().open_range(key) as source:
            yield from read_chunks(source, CHUNK)


_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
_STATUS = {AddressRefused: 403, ObjectMissing: 404, UploadMissing: 404, PartsRefused: 400, ChecksumMismatch: 400}

View = Callable[..., HttpResponseBase]


def _problems_answered(view: View) -> View:
    @wraps(view)
    def answered(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except (ApiProblem, DomainError, YardmasterError) as error:
            problem = problem_of(error)
            if problem is None:
                raise
            status = _STATUS.get(type(error), problem.status)  # type: ignore[arg-type]
            problem.status = status
            body = body_of(problem)
            return JsonResponse(body, status=status, content_type=CONTENT_TYPE, headers=problem.headers | _HEADERS)

    return answered


@_problems_answered
def object_read(request: HttpRequest, key: str) -> HttpResponseBase:
    """GET or HEAD of an object, whole or one range."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
    grant = _served().addresses.read_grant(key, request.GET.dict())
    found = storage().stat(grant.key)
    headers = object_headers(found, grant.filename, grant.content_type)
    if _is_known(request, headers["ETag"]):
        return HttpResponse(status=304, headers=headers)
    asked = request.headers.get("Range", "") if _range_holds(request, headers["ETag"]) else ""
    try:
        part = parse_range(asked, found.size)
    except RangeRefused:
        return HttpResponse(status=416, headers=headers | {"Content-Range": f"bytes */{found.size}"})
    length = part.length if part else found.size
    headers["Content-Length"] = str(length)
    if part:
        headers["Content-Range"] = f"bytes {part.start}-{part.start + length - 1}/{found.size}"
    status = 206 if part else 200
    if request.method == "HEAD":
        return HttpResponse(status=status, headers=headers)
    pieces = _pieces(grant.key, part.start if part else 0, length)
    return StreamingHttpResponse(stream_pieces(request, pieces), status=status, headers=headers)


@csrf_exempt
@_problems_answered
def part_write(request: HttpRequest, upload_id: str, part: int) -> HttpResponseBase:
    """PUT of one part: exactly as many bytes as were signed, or nothing."""
    if request.method != "PUT":
        return HttpResponse(status=405, headers={"Allow": "PUT"})
    store = _served()
    grant = store.addresses.part_grant(upload_id, part, request.GET.dict())
    sent = request.headers.get("Content-Length", "")
    if sent.isdigit() and int(sent) > grant.size:
        raise TooLarge(f"This part has {grant.size} bytes; {sent} were sent.")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise ApiProblem(415, "unsupported_media_type", "A part is sent as it is, without an encoding.")
    return HttpResponse(status=200, headers=_HEADERS | {"ETag": quote_etag(store.part_write(grant, request))})


def stream_pieces(request: HttpRequest, pieces: Iterator[bytes]) -> Iterator[bytes] | AsyncIterator[bytes]:
    """The pieces as this kind of server wants them: Django under ASGI would first read all of a plain iterator."""
    return _off_the_loop(pieces) if isinstance(request, ASGIRequest) else pieces


def archive_response(request: HttpRequest, name: str, files: Iterable[StoredFile]) -> StreamingHttpResponse:
    """The files as one zip of this name, for a user who may read them. They are gone through while it is sent, when
    the database must not be touched."""
    disposition = content_disposition_header(True, name) or "attachment"
    pieces = stream_pieces(request, zip_chunks(files, file_chunks))
    return StreamingHttpResponse(pieces, content_type="application/zip", headers={"Content-Disposition": disposition})


def file_response(request: HttpRequest, file: StoredFile) -> StreamingHttpResponse:
    """A file that was sent in segments, as one, for a user who may read it."""
    headers = _HEADERS | {
        "Content-Disposition": content_disposition_header(True, file.path.rpartition("/")[2]) or "attachment",
        "Content-Length": str(file.size),
    }
    pieces = stream_pieces(request, file_chunks(file))
    return StreamingHttpResponse(pieces, content_type="application/octet-stream", headers=headers)


def _pieces(key: str, start: int, length: int) -> Iterator[bytes]:
    # Opened with the first piece: a response that is never sent leaves nothing open.
    with storage().open_range(key, start, length) as body:
        yield from read_chunks(body, CHUNK)


async def _off_the_loop(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each piece is made in a thread. A client that goes away closes the source."""
    try:
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece
    finally:
        if isinstance(pieces, Generator):
            with suppress(ValueError):  # a thread still makes a piece: the source closes when that is done
                pieces.close()


def object_headers(found: ObjectStat, filename: str, content_type: str) -> dict[str, str]:
    """Of an answer with the object: in ASCII, without line breaks."""
    name = filename or found.key.rpartition("/")[2]
    return _HEADERS | {
        "Content-Type": content_type if content_type in HARMLESS else "application/octet-stream",
        "Content-Disposition": content_disposition_header(True, name) or "attachment",
        "ETag": quote_etag(found.etag),
        "Last-Modified": http_date(found.modified.timestamp()),
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, max-age=0, must-revalidate",
    }


def _is_known(request: HttpRequest, etag: str) -> bool:
    known = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in known or any(one.removeprefix("W/") == etag for one in known)


def _range_holds(request: HttpRequest, etag: str) -> bool:
    """Whether `If-Range` names the object as it is."""
    return request.headers.get("If-Range", etag) == etag


def _served() -> PortalServed:
    store = storage().served()
    if store is None:
        raise NotFound("This portal's object store has an address of its own.")
    return store


urlpatterns: list[URLPattern | URLResolver] = [
    path("objects/<path:key>", object_read, name="storage_object"),
    path("parts/<str:upload_id>/<int:part>", part_write, name="storage_part"),
]
"""Of a store that the portal serves itself; they are signed, and only made by the store."""
