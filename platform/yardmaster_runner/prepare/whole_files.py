"""Files that are one record each: pictures and texts in the folders of their classes."""

from __future__ import annotations

from typing import Any, Dict

from yardmaster_runner.prepare import pictures
from yardmaster_runner.prepare.files import File
from yardmaster_runner.prepare.trouble import BadRecord

LARGEST_FILE = 256 << 20
MOST_PIXELS = 100_000_000


def read_whole(path: str, one: File, form: str) -> Dict[str, Any]:
    """The record of a file, without its label. Raises `BadRecord`."""
    if one.size > LARGEST_FILE:
        raise BadRecord(one.path, "%d bytes, more than %d" % (one.size, LARGEST_FILE))
    with open(path, "rb", buffering=0) as file:
        data = file.read(one.size)
    if form == "images":
        check_image(one.path, data)
        return {"image": data}
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError as error:
        raise BadRecord(one.path, "not UTF-8: byte %d" % error.start) from None


def check_image(place: str, data: bytes) -> None:
    """Raise `BadRecord` for a picture that is no picture, cut off, or too large."""
    try:
        width, height = pictures.size_of(data)
    except ValueError as error:
        raise BadRecord(place, str(error)) from None
    if width * height > MOST_PIXELS:
        raise BadRecord(place, "%d pixels, more than %d" % (width * height, MOST_PIXELS))
