"""What may name a namespace in an address, and how a user's name becomes one. Not here: whether a slug is taken."""

from __future__ import annotations

import re
import uuid

from django.utils.text import slugify

LONGEST = 63
_PATTERN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def is_slug(text: str) -> bool:
    """Whether it is a DNS label that cannot be mistaken for an id: requests name a namespace by either."""
    return bool(_PATTERN.fullmatch(text)) and not is_uuid(text)


def is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def slug_of(name: str) -> str:
    """The slug nearest to a user's name; `user` where nothing of it can stand in an address."""
    slug = slugify(name[:200]).replace("_", "-").strip("-")[: LONGEST - 13].strip("-")
    if is_uuid(slug):
        return f"u-{slug}"
    return slug or "user"
