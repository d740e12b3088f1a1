"""Fetch one file: streamed to a place of its own, checked, then put in place whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import http.client
import os
import re
import threading
from typing import Tuple
from urllib.parse import urljoin

from yardmaster_runner.answers import LATER_STATUSES, json_object, portals_code
from yardmaster_runner.checksums import Checksum
from yardmaster_runner.http_hosts import Hosts, NetworkTrouble
from yardmaster_runner.order import RemoteFile
from yardmaster_runner.receiving import PIECE, Incoming, Interrupted

TIMEOUT = 60.0
REDIRECTS = 5
LONGEST_REFUSAL = 64 << 10
REFUSAL_OF_S3 = re.compile(rb"<Error\b[^>]*>.*<Code>\w+</Code>", re.DOTALL)


class Corrupt(Exception):
    """What came is not what was ordered: another size or another checksum."""


class AddressRefused(Exception):
    """The store says that it does not serve this address (any more): a new one is needed."""


class Changed(Exception):
    """The object is another one than was registered, or is gone. Its owner changed it, so trying again is useless."""


class DiskFull(Exception):
    """The disk is full."""


def download(hosts: Hosts, file: RemoteFile, url: str, destination: str, incoming: str) -> None:
    """Fetch `url` into the folder `incoming`; what has the size and checksum of `file` is then moved to `destination`.

    Raises `NetworkTrouble` (try again), `AddressRefused` (get a new address), `Corrupt`, `Changed` or `DiskFull`,
    leaving nothing.
    """
    temporary = os.path.join(incoming, "%d-%d" % (os.getpid(), threading.get_ident()))
    try:
        checksum = Checksum(file.size, file.sha256)
        with Incoming(temporary, checksum.update, _own_space()) as incoming_file:
            _receive(hosts, file, url, incoming_file)
            size = incoming_file.size
        if size != file.size:
            raise Corrupt("it has %d bytes, not %d" % (size, file.size))
        sha256 = checksum.text()
        if file.sha256 and sha256 != file.sha256:
            raise Corrupt("its SHA-256 is %s, not %s" % (sha256, file.sha256))
        _move(temporary, destination)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull("no space left to store %s (%d bytes)" % (file.path, file.size)) from error
        raise


def _move(source: str, target: str) -> None:
    """Into a folder that most often is there."""
    try:
        os.replace(source, target)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.replace(source, target)


def _receive(hosts: Hosts, file: RemoteFile, url: str, target: Incoming) -> None:
    response, url = _open(hosts, url, file)
    is_plain = url.startswith("http://")
    is_whole = False
    try:
        while not is_whole and target.size <= file.size:
            is_whole = not target.take(response, is_plain, TIMEOUT)
    except Interrupted as error:
        message = "%s was interrupted after %d of %d bytes" % (file.path, target.size, file.size)
        raise NetworkTrouble(message) from error
    finally:
        if not is_whole or response.will_close:
            hosts.forget(url)


_OF_THREADS = threading.local()


def _own_space() -> memoryview:
    """Of this thread, for all that it fetches."""
    if not hasattr(_OF_THREADS, "space"):
        _OF_THREADS.space = memoryview(bytearray(PIECE))
    space: memoryview = _OF_THREADS.space
    return space


def _open(hosts: Hosts, url: str, file: RemoteFile) -> Tuple[http.client.HTTPResponse, str]:
    headers = {"Accept-Encoding": "identity"}
    if file.etag:
        headers["If-Match"] = '"%s"' % file.etag
    for _ in range(REDIRECTS):
        response = hosts.request("GET", url, headers, None, TIMEOUT)
        if file.etag and _is_changed(response, file):
            hosts.forget(url)
            raise Changed("it was changed or deleted in its bucket after the dataset was registered")
        if response.status == 200 and _is_the_stores(response, file.size):
            return response, url
        status, where = response.status, response.headers.get("Location")
        is_refusal = 400 <= status < 500 and _is_refusal(response)
        hosts.forget(url)
        if status in (301, 302, 303, 307, 308) and where:
            url = urljoin(url, where)
        elif is_refusal:
            raise AddressRefused("the store answered %d" % status)
        elif status >= 500 or status in LATER_STATUSES:
            raise NetworkTrouble("the store answered %d" % status)
        else:
            raise NetworkTrouble("%d was answered, and not in the store's words" % status)
    raise NetworkTrouble("too many redirects")


def _is_changed(response: http.client.HTTPResponse, file: RemoteFile) -> bool:
    """Servers that know `If-Match` say so; of others the ETag is compared."""
    if response.status == 412:
        return True
    if response.status == 404:
        return bool(REFUSAL_OF_S3.search(response.read(LONGEST_REFUSAL)))
    found = response.headers.get("ETag", "").strip('"')
    return response.status == 200 and bool(found) and found != file.etag


def _is_the_stores(response: http.client.HTTPResponse, size: int) -> bool:
    """Whether this may be the file. Stores name what they send and how long it is; what is not as long as the file, and
    has no name or is a page, comes from something in between."""
    if response.headers.get("Content-Length") == str(size):
        return True
    return bool(response.headers.get("ETag")) and response.headers.get_content_type() != "text/html"


def _is_refusal(response: http.client.HTTPResponse) -> bool:
    """Whether the store itself refuses: the portal's in its own words, others as S3 does."""
    if response.status in LATER_STATUSES:
        return False
    try:
        content = response.read(LONGEST_REFUSAL)
    except (OSError, http.client.HTTPException):
        return False
    if REFUSAL_OF_S3.search(content):
        return True
    return bool(portals_code(response.status, response.headers.get("Content-Type", ""), json_object(content)))
