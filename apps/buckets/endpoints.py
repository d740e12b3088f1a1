"""Which S3 servers a user may name: those that the operator allows. Administrators may name others, too."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from django.conf import settings

from apps.accounts.models import User
from apps.errors import Invalid
from yardmaster.errors import Problem
from yardmaster.job.spec_limits import shorten
from yardmaster.storage.s3_client import Endpoint
from yardmaster.storage.s3_guard import is_forbidden


def endpoint_chosen(user: User, text: str) -> str:
    """The server's address in one form; the only allowed one where none is named. Raises `Invalid`."""
    allowed: list[str] = settings.YARDMASTER_BUCKET_ENDPOINTS
    if not text and len(allowed) == 1:
        return allowed[0]
    if not text:
        raise _refused(text, "Which S3 server?", _remedy(allowed))
    try:
        origin = Endpoint(text).origin.lower()
        host, _ = urlsplit(origin).hostname or "", urlsplit(origin).port
    except ValueError as error:
        raise _refused(
            text, "This is no address of an S3 server.", "Write https://host or https://host:port."
        ) from error
    if origin in allowed:
        return origin
    if not user.is_staff:
        raise _refused(text, "Datasets cannot be registered from this server.", _remedy(allowed))
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return origin
    if is_forbidden(address):
        raise _refused(text, "Addresses of this kind are never connected to.", "Name the server by its host name.")
    return origin


def _remedy(allowed: list[str]) -> str:
    if allowed:
        return f"Use one of: {', '.join(allowed)}. An administrator can allow others (YARDMASTER_BUCKET_ENDPOINTS)."
    return "Ask an administrator to allow it (YARDMASTER_BUCKET_ENDPOINTS) or to register it."


def _refused(text: str, message: str, remedy: str) -> Invalid:
    return Invalid([Problem("endpoint", "not_allowed", message, remedy, shorten(text))])
