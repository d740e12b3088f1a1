"""Trying an object store with a server of its own: does it keep what it is given, and refuse what was not signed? The
portal relies on the second, since it reads nothing again. Nothing of the trial stays.
"""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
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


def store_try(store: Storage, page_origin: str = "") -> Iterator[Tried]:
    """What came of each trial; the first that fails of those that need each other is the last. `page_origin`: of the
    portal's pages, which send to the store."""
    folder = f"uploads/trial-{new_id()}"
    try:
        store.prepare()
        store.put(f"{folder}/kept", _DATA)
        with store.open_range(f"{folder}/kept") as body:
            is_same = body.read() == _DATA
        yield Tried(is_same, "It keeps what it is given." if is_same else "It gave back other bytes than it was given.")
        yield from _addresses(store, folder, page_origin)
    except YardmasterError as error:
        yield Tried(False, error.message, error.remedy)
        return
    store.delete_prefix(folder)


def _addresses(store: Storage, folder: str, page_origin: str) -> Iterator[Tried]:
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
        if page_origin:
            yield _pages(store, folder, page_origin)


def _pages(store: Storage, folder: str, page_origin: str) -> Tried:
    """Whether browsers may send there from the portal's pages: what they ask before (CORS)."""
    signed = store.object_url(f"{folder}/sent", size=1, sha256=hashlib.sha256(b"x").hexdigest(), expires=_EXPIRY)
    names = sorted(name.lower() for name in signed.headers if name.lower() != "content-length") if signed else []
    remedy = f"Allow the origin {page_origin} there (CORS), with the methods GET and PUT and all headers."
    headers = {
        "Origin": page_origin, "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": ",".join(["content-type", *names]),
    }  # fmt: skip
    address = signed.url if signed else store.origin(Audience.PEOPLE)
    try:
        request = urllib.request.Request(address, headers=headers, method="OPTIONS")
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            allowed = {name.lower(): value.lower() for name, value in answer.headers.items()}
    except OSError as error:  # an HTTPError is one, too
        return Tried(
            False, f"Browsers cannot send to it from the portal's pages: asked first, it says {error}.", remedy
        )
    lacking = lacking_of(allowed, page_origin, names)
    if lacking:
        return Tried(False, f"Browsers cannot send to it from {page_origin}: it does not allow {lacking}.", remedy)
    return Tried(True, f"Browsers can send to it from {page_origin}.")


def lacking_of(allowed: Mapping[str, str], page_origin: str, names: Sequence[str]) -> str:
    """What an answer with these headers (names and values in lower case) does not allow pages of this origin: the
    origin, the method PUT, or one of these headers. Empty: nothing."""
    if allowed.get("access-control-allow-origin", "") not in ("*", page_origin.lower()):
        return "that origin"
    methods, headers = (
        {one.strip() for one in allowed.get(f"access-control-allow-{what}", "").split(",")}
        for what in ("methods", "headers")
    )
    if not methods & {"put", "*"}:
        return "the method PUT"
    return "" if "*" in headers else ", ".join(f"the header {name}" for name in names if name not in headers)


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
