"""Whether a picture is whole, and how large it is: from its headers, checksums and end. Nothing is decoded, and no
library is needed."""

from __future__ import annotations

import struct
import zlib
from typing import Tuple

PNG = b"\x89PNG\r\n\x1a\n"
END_WITHIN = 1024
"""Bytes at the end of a file in which the end of the picture has to be: some programs write something behind it."""
FRAMES = (0xC0, 0xC1, 0xC2)
"""Of JPEG: baseline, extended and progressive, which TensorFlow decodes."""
OTHER_FRAMES = (0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF)


def size_of(data: bytes) -> Tuple[int, int]:
    """Width and height. Raises ValueError with what is wrong."""
    if data[:3] == b"\xff\xd8\xff":
        return _jpeg(data)
    if data[:8] == PNG:
        return _png(data)
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return _gif(data)
    if data[:2] == b"BM":
        return _bmp(data)
    raise ValueError("not a picture in JPEG, PNG, GIF or BMP")


def _jpeg(data: bytes) -> Tuple[int, int]:
    if b"\xff\xd9" not in data[-END_WITHIN:]:
        raise _cut_off("JPEG")
    at, end = 2, len(data) - 9
    while at < end:
        if data[at] != 0xFF:
            raise ValueError("not a whole picture: byte %d is no marker of JPEG" % at)
        kind = data[at + 1]
        if kind in FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            if not height or not width:
                raise ValueError("not a whole picture: it has no size")
            return width, height
        if kind in OTHER_FRAMES:
            raise ValueError("a JPEG of a kind that TensorFlow does not decode")
        if kind == 0xDA:
            break
        if kind == 0xFF or kind == 0x01 or 0xD0 <= kind <= 0xD7:
            at += 1 if kind == 0xFF else 2
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise ValueError("not a whole picture: a JPEG without a frame")


def _png(data: bytes) -> Tuple[int, int]:
    at, size = 8, (0, 0)
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        kind, end = data[at + 4 : at + 8], at + 8 + length
        if end + 4 > len(data):
            raise _cut_off("PNG")
        if zlib.crc32(memoryview(data)[at + 4 : end]) != int.from_bytes(data[end : end + 4], "big"):
            raise ValueError("not a whole picture: the checksum at byte %d of the PNG is wrong" % end)
        if at == 8:
            if kind != b"IHDR" or length != 13:
                raise ValueError("not a whole picture: a PNG without a header")
            size = struct.unpack_from(">II", data, at + 8)
        if kind == b"IEND":
            if 0 in size:
                raise ValueError("not a whole picture: it has no size")
            return size
        at = end + 4
    raise _cut_off("PNG")


def _gif(data: bytes) -> Tuple[int, int]:
    if len(data) < 14 or b";" not in data[-END_WITHIN:]:
        raise _cut_off("GIF")
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _bmp(data: bytes) -> Tuple[int, int]:
    if len(data) < 54:
        raise _cut_off("BMP")
    begins, header, width, height, _, bits, compression = struct.unpack_from("<IIiiHHI", data, 10)
    height = abs(height)
    if header < 40 or width <= 0 or not height:
        raise ValueError("not a whole picture: a BMP without a size")
    if compression == 0 and begins + (width * bits + 31) // 32 * 4 * height > len(data):
        raise _cut_off("BMP")
    return width, height


def _cut_off(form: str) -> ValueError:
    return ValueError("cut off: the end of the %s is missing" % form)
