"""What an S3 server answers, as XML: its elements, and a page of objects, of which nothing is believed that S3 does not
allow. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from yardmaster.storage.base import ObjectStat

_LONGEST_KEY, _LONGEST_ETAG, _LARGEST = 1024, 200, (1 << 63) - 1
"""Bytes of a key, as S3 allows; of an ETag, far more than any has; and of an object, as databases count them."""


def objects_in(answer: ElementTree.Element) -> tuple[list[ObjectStat], bool]:
    """The objects of a page, and whether more follow it. Raises ValueError where it is none."""
    is_encoded, is_cut = text_of(answer, "EncodingType") == "url", text_of(answer, "IsTruncated") == "true"
    found = [_listed(one, is_encoded) for one in all_of(answer, "Contents")]
    if is_cut and not found:
        raise ValueError("it names no objects, and says that there are more")
    return found, is_cut


def _listed(element: ElementTree.Element, is_encoded: bool) -> ObjectStat:
    """Raises ValueError where it is no object that S3 can have."""
    key, size, etag = (text_of(element, name) for name in ("Key", "Size", "ETag"))
    key = unquote_plus(key) if is_encoded else key
    if len(key.encode("utf-8", "replace")) > _LONGEST_KEY or len(etag) > _LONGEST_ETAG or "\0" in key:
        raise ValueError(f"a key has a zero or more than {_LONGEST_KEY} bytes, or an ETag more than {_LONGEST_ETAG}")
    if not (size.isascii() and size.isdigit() and len(size) < 20 and int(size) <= _LARGEST):
        raise ValueError(f"an object has the size {size[:40]!r}")
    modified = datetime.fromisoformat(text_of(element, "LastModified").replace("Z", "+00:00"))
    return ObjectStat(key, int(size), etag, modified.replace(microsecond=0))


def name_of(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def all_of(element: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    return (child for child in element if name_of(child) == name)


def text_of(element: ElementTree.Element, name: str) -> str:
    """The text of the child of this name; empty where there is none."""
    return next((child.text or "" for child in all_of(element, name)), "")
