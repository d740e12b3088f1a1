"""A warning that this client is newer than the portal: once for each pair of both, not with each command. And what the
portal's administrator tells everyone: once per command."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from yardmaster_client import notices
from yardmaster_client.cache import cache_folder
from yardmaster_client.cli.output import notes
from yardmaster_client.version import VERSION, NewerThanPortal


@contextlib.contextmanager
def warned_once() -> Iterator[None]:
    """Shows that warning as a note, where it was not shown before. Other warnings stay as they are."""
    with warnings.catch_warnings():
        shown_otherwise = warnings.showwarning

        def show(message: Warning | str, *where: Any, **more: Any) -> None:
            if not isinstance(message, NewerThanPortal):
                shown_otherwise(message, *where, **more)
            elif _is_first(message):
                notes().print(Text(f"warning: {message}", style="yellow"))

        warnings.simplefilter("always", NewerThanPortal)
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def notice_shown() -> Iterator[None]:
    """Shows the notice to all as a note, the first time that an answer has it."""
    seen: set[str] = set()

    def show(kind: str, text: str) -> None:
        if text not in seen:
            seen.add(text)
            word, style = ("warning", "yellow") if kind == "warning" else ("notice", "blue")
            notes().print(Text(f"{word}: {text}", style=style))

    notices.listen(show)
    try:
        yield
    finally:
        notices.listen(None)


def _is_first(warning: NewerThanPortal) -> bool:
    """Where nothing can be kept, each time is the first."""
    pair = f"{warning.url}\n{warning.portal}\n{VERSION}"
    mark = cache_folder() / "warned" / hashlib.sha256(pair.encode()).hexdigest()[:32]
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:
        return True
    return True
