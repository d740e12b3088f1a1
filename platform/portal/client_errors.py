"""The portal's own log against what strangers send: errors of clients are written once, at INFO, few per minute, and
nothing that came from outside is long or has lines of its own.

`ClientErrors` filters what the handler writes, `bounded` cuts what is written. Not here: how much (`own_log`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import MutableMapping
from typing import Any

from portal.own_log import LONGEST_MESSAGE, LONGEST_TEXT, PerMinute, shortened, shown, without_secrets

log = logging.getLogger(__name__)

_OF_THE_SERVER = ("uvicorn", "websockets")
_CLIENTS_FAULTS = ("opening handshake failed", "connection handler failed", "data transfer failed", "keepalive ping")
"""What a server of WebSockets logs as its own error where a client's bytes were at fault."""


class ClientErrors(logging.Filter):
    """For a handler. `most` per minute; the others become one line, when their minute is over."""

    def __init__(self, most: int, level: str) -> None:
        super().__init__()
        self._level = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
        self._window = PerMinute(most)
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written; a client's error is made short and INFO on the way."""
        if not _is_a_clients(record):
            return True
        record.levelno, record.levelname, record.exc_info, record.exc_text = logging.INFO, "INFO", None, None
        record.msg, record.args = f"{shown(_said(record), LONGEST_TEXT)}{_sender(record)}", ()
        if self._level > logging.INFO:
            return False
        with self._lock:
            if self._window.admits(time.monotonic()):
                return True
            self._count_later()
        return False

    def _count_later(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(max(0.0, self._window.ends_at() - time.monotonic()), self._say_how_many)
            self._timer.daemon = True
            self._timer.start()

    def _say_how_many(self) -> None:
        with self._lock:
            left_out, self._timer = self._window.take_left_out(), None
        if left_out:
            log.warning(
                "%d more errors of clients within a minute are not written (YARDMASTER_LOG_CLIENT_ERRORS)", left_out
            )


def bounded(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: every text of an event on one line, cut, and without what of a link lets one
    in; tracebacks without their middle."""
    for key, value in event.items():
        if not isinstance(value, str):
            continue
        if key in ("exception", "stack"):
            event[key] = shortened(value)
        else:
            event[key] = shown(without_secrets(value), LONGEST_MESSAGE if key == "event" else LONGEST_TEXT)
    return event


def _is_a_clients(record: logging.LogRecord) -> bool:
    if record.name.startswith("django.security"):
        return True
    if record.name == "django.request":
        return getattr(record, "status_code", 500) < 500
    if record.name.partition(".")[0] in _OF_THE_SERVER:
        return record.levelno <= logging.WARNING or record.getMessage().startswith(_CLIENTS_FAULTS)
    return False


def _said(record: logging.LogRecord) -> str:
    """What it says. Of a Host that is not answered Django names its own setting, not the portal's."""
    return record.getMessage().replace(" to ALLOWED_HOSTS", " to YARDMASTER_ALLOWED_HOSTS")


def _sender(record: logging.LogRecord) -> str:
    """Who sent it, where the record knows."""
    meta = getattr(getattr(record, "request", None), "META", {})
    address = meta.get("REMOTE_ADDR", "")
    return f" (from {shown(address)})" if address else ""
