"""What the portal's administrator tells everyone, as its answers carry it. Silent unless someone listens: the command
line does, once per command; scripts are not disturbed.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

LONGEST = 2_000
Listener = Callable[[str, str], None]

_listener: Listener | None = None


def listen(listener: Listener | None) -> None:
    """Call it with the kind (`information`, `warning`) and the text of each notice from now on. None: no longer."""
    global _listener
    _listener = listener


def received(said: str) -> None:
    """An answer's header; empty: it had none."""
    if said and _listener is not None:
        kind, _, text = said.partition("; ")
        _listener(kind, unquote(text)[:LONGEST])
