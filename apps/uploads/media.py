"""What stored files may be delivered as. They come from people, so browsers get a type only where nothing can run."""

from __future__ import annotations

import mimetypes

HARMLESS = {"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "text/plain", "application/json"}
"""Types that browsers show without running anything; all others are delivered as plain bytes."""


def content_type_of(path: str) -> str:
    """By its name: a harmless type, or empty for plain bytes."""
    guessed = mimetypes.guess_type(path)[0] or ""
    return guessed if guessed in HARMLESS else ""
