"""How pages show lines of a log without a script."""

from __future__ import annotations

import re

from django import template

register = template.Library()

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@register.filter
def plain(text: str) -> str:
    """The text as a terminal would leave it, without colours: of a progress bar, its last state."""
    states = [part for part in _ESCAPES.sub("", text).split("\r") if part]
    return states[-1] if states else ""
