"""Until when a certificate counts: read here, since a server that refuses one closes the connection without a word."""

from __future__ import annotations

import datetime
import ssl
from typing import Tuple

SEQUENCE, VERSION, UTC_TIME = 0x30, 0xA0, 0x17


def validity(pem: str) -> Tuple[datetime.datetime, datetime.datetime]:
    """From when to when the certificate counts. Raises `ValueError` where it is none."""
    der = ssl.PEM_cert_to_DER_cert(pem)
    try:
        certificate, _ = _content(der, 0)
        signed, _ = _content(der, certificate)
        at = signed
        if der[at] == VERSION:
            at = _end(der, at)
        for _ in range(3):  # its number, the algorithm, who signed it
            at = _end(der, at)
        first, _ = _content(der, at)
        return _time(der, first), _time(der, _end(der, first))
    except IndexError as error:
        raise ValueError("it is cut off") from error


def refusal(pem: str, now: datetime.datetime) -> str:
    """Why the certificate does not count now; empty where it does."""
    first, last = validity(pem)
    if now > last:
        return "it has expired, on %s" % last.strftime("%Y-%m-%d %H:%M UTC")
    if now < first:
        return "it counts only from %s on" % first.strftime("%Y-%m-%d %H:%M UTC")
    return ""


def _content(der: bytes, at: int) -> Tuple[int, int]:
    """Where the content of the element at this place begins and ends."""
    length, begin = der[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        length, begin = int.from_bytes(der[begin : begin + count], "big"), begin + count
    return begin, begin + length


def _end(der: bytes, at: int) -> int:
    return _content(der, at)[1]


def _time(der: bytes, at: int) -> datetime.datetime:
    begin, end = _content(der, at)
    text = der[begin:end].decode("ascii").rstrip("Z")
    if der[at] == UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    return datetime.datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=datetime.timezone.utc)
