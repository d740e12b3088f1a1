"""Files that are one record each: pictures and texts in the folders of their classes."""

from __future__ import annotations

import io
import warnings
from typing import Any, Dict

from yardmaster_runner.prepare import folder
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError

LARGEST_FILE = 256 << 20
MOST_PIXELS = 100_000_000


def read_whole(path: str, one: folder.File, form: str) -> Dict[str, Any]:
    """The record of a file, without its label. Raises `BadRecord`."""
    if one.size > LARGEST_FILE:
        raise BadRecord(one.path, "%d bytes, more than %d" % (one.size, LARGEST_FILE))
    with open(path, "rb") as file:
        data = file.read(LARGEST_FILE)
    if form == "images":
        check_image(one.path, data)
        return {"image": data}
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError as error:
        raise BadRecord(one.path, "not UTF-8: byte %d" % error.start) from None


def class_of(one: folder.File) -> str:
    """The class that the folder of a file names. Raises `BadRecord` where there is none."""
    name = folder.class_of(one.path)
    if not name:
        raise BadRecord(one.path, "in no class folder, as other files are")
    return name


def check_image(place: str, data: bytes) -> None:
    """Raise `BadRecord` for a picture that is no picture, cut off, or too large. Nothing is decoded."""
    try:
        from PIL import Image
    except ImportError:
        raise PrepareError("images need Pillow: add pillow to the packages of the task") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            picture = Image.open(io.BytesIO(data), formats=("JPEG", "PNG", "GIF", "BMP"))
            pixels, form = picture.size[0] * picture.size[1], picture.format
            picture.verify()
    except Exception as error:  # noqa: BLE001 - Pillow raises many kinds for hostile pictures
        raise BadRecord(place, "not a whole picture: %s" % error) from None
    if pixels > MOST_PIXELS:
        raise BadRecord(place, "%d pixels, more than %d" % (pixels, MOST_PIXELS))
    ends = {"JPEG": b"\xff\xd9", "PNG": b"IEND", "GIF": b";"}.get(str(form), b"")
    if ends not in data[-1024:]:
        raise BadRecord(place, "cut off: the end of the %s is missing" % form)
