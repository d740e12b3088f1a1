"""What is a key. Keys come from ids and from paths that `paths` has checked; this is the last gate before a store.

Not here: which paths users may choose (`paths`).
"""

from __future__ import annotations

from yardmaster.storage.base import MAX_KEY_BYTES, KeyRefused

MAX_SEGMENT_BYTES = 255
"""What one name may have on the file systems in use."""


def key_segments(key: str) -> list[str]:
    """The key's segments, or `KeyRefused` with what is wrong."""
    try:
        length = len(key.encode())
    except UnicodeEncodeError as error:
        raise KeyRefused(f"The key {key!r} is not valid Unicode.") from error
    if not 0 < length <= MAX_KEY_BYTES:
        raise KeyRefused(f"A key has 1 to {MAX_KEY_BYTES} bytes; this one has {length}.")
    segments = key.split("/")
    for segment in segments:
        if segment in {"", ".", ".."} or "\0" in segment:
            raise KeyRefused(f"The key {key!r} has the segment {segment!r}, which is not allowed.")
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            raise KeyRefused(f"The key {key[:80]!r}… has a segment of more than {MAX_SEGMENT_BYTES} bytes.")
    return segments


def key_join(prefix: str, path: str) -> str:
    """`prefix/path`, checked."""
    key = f"{prefix}/{path}"
    key_segments(key)
    return key
