"""Trying an object store with a server of its own: does it keep what it is given, and refuse what was not signed? The
portal relies on the second, since it reads nothing again. Nothing of the trial stays.
"""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from yardmaster.errors import YardmasterError
from yardmaster.ids import new_id
from yardmaster.storage.base import Audience, Storage

_DATA, _ALTERED, _LONGER = b"trial", b"trail", b"trials"
_EXPIRY = timedelta(minutes=1)
_SECONDS = 10


@dataclass(frozen=True)
class Tried:
    """One thing that was tried."""

    is_well: bool
    message: str
    remedy: str = ""


def store_try(store: Storage) -> Iterator[Tried]:
    """What came of each trial; the first that fails of those that need each other is the last."""
    folder = f"uploads/trial-{new_id()}"
    try:
        store.prepare()
        store.put(f"{folder}/kept", _DATA)
        with store.open_range(f"{folder}/kept") as body:
            is_same = body.read() == _DATA
        yield Tried(is_same, "It keeps what it is given." if is_same else "It gave back other bytes than it was given.")
        yield from _addresses(store, folder)
    except YardmasterError as error:
        yield Tried(False, error.message, error.remedy)
        return
    store.delete_prefix(folder)


def _addresses(store: Storage, folder: str) -> Iterator[Tried]:
    origin = store.origin(Audience.PEOPLE)
    try:
        wrong = [name for name, data in (("bytes", _ALTERED), ("lengths", _LONGER)) if _sent(store, folder, data)]
        is_taken = _sent(store, folder, _DATA)
    except OSError as error:
        remedy = "The portal itself does not need it: where only browsers reach it, try it from there."
        yield Tried(False, f"It does not answer at {origin}, the address for people: {error}", remedy)
        return
    if wrong:
        message = (
            f"It takes other {' and '.join(wrong)} than were signed: tenants could pass their quota, and damage go "
        )
        remedy = "Use a server that verifies x-amz-checksum-sha256 and signed headers, such as MinIO."
        yield Tried(False, f"{message}unnoticed.", remedy)
    elif not is_taken:
        yield Tried(False, f"It refuses what was signed for {origin}.", "Compare its region and its clock with these.")
    else:
        yield Tried(True, "It takes what was signed, and refuses other bytes and lengths.")


def _sent(store: Storage, folder: str, data: bytes) -> bool:
    """Whether these bytes are taken at an address for others. Raises OSError: there is no answer."""
    sha256 = hashlib.sha256(_DATA).hexdigest()
    signed = store.object_url(f"{folder}/sent", size=len(_DATA), sha256=sha256, expires=_EXPIRY)
    if signed is None:
        return False
    request = urllib.request.Request(signed.url, data, dict(signed.headers), method=signed.method)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS):
            return True
    except urllib.error.HTTPError:
        return False
