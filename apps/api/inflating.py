"""Bodies of requests that are compressed with gzip, up to a bound."""

from __future__ import annotations

import zlib

from apps.errors import Invalid, TooLarge
from yardmaster.errors import Problem

_GZIP = 31
"""What `zlib` reads: one gzip stream, with its checksum."""


def inflated(raw: bytes, encoding: str, most: int, what: str, remedy: str) -> bytes:
    """The body as it was before its `Content-Encoding`, `identity` or `gzip`; of gzip `most` bytes at most are made.
    `what` names its content. Raises `Invalid`, and `TooLarge` with `remedy`."""
    if encoding == "identity":
        return raw
    if encoding != "gzip":
        message = f"{encoding[:40]!r} is not known here."
        raise Invalid([Problem("Content-Encoding", "unknown", message, "Use gzip, or none.", encoding[:40])])
    inflater = zlib.decompressobj(_GZIP)
    try:
        data = inflater.decompress(raw, most + 1)
    except zlib.error as error:
        raise Invalid([Problem("", "invalid", f"The body is not gzip: {error}.", "Send it again.")]) from error
    if len(data) > most:
        raise TooLarge(f"A request holds at most {most} bytes of {what}.", remedy=remedy)
    if not inflater.eof or inflater.unused_data:
        raise Invalid([Problem("", "invalid", "The body is not one whole gzip stream.", "Send it again.")])
    return data
