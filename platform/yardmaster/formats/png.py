"""Pixels as a PNG file, without a library."""

from __future__ import annotations

import base64
import struct
import zlib


def png_of(pixels: bytes, width: int, channels: int) -> bytes:
    """Rows of 8-bit grey (1 channel) or red, green and blue (3) as a PNG file."""
    stride = width * channels
    rows = [pixels[at : at + stride] for at in range(0, len(pixels), stride)]
    header = struct.pack(">IIBBBBB", width, len(rows), 8, 0 if channels == 1 else 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def data_address(png: bytes) -> str:
    """The file as an address that an `img` shows."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
