"""Fetch one file: streamed to a place of its own, checked, then put in place whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import os
import socket
import threading
from typing import Callable, Tuple
from urllib.parse import urljoin

from yardmaster_runner.http_hosts import Hosts, NetworkTrouble
from yardmaster_runner.order import RemoteFile

CHUNK = 1 << 20
TIMEOUT = 60.0
REDIRECTS = 5


class Corrupt(Exception):
    """What came is not what was ordered: another size or another checksum."""


class AddressRefused(Exception):
    """The store does not serve this address (any more): a new one is needed."""


class NoRoom(Exception):
    """The disk is full."""


def download(hosts: Hosts, file: RemoteFile, url: str, destination: str, incoming: str) -> None:
    """Fetch `url` into the folder `incoming`; what has the size and checksum of `file` is then moved to `destination`.

    Raises `NetworkTrouble` (try again), `AddressRefused` (get a new address), `Corrupt` or `NoRoom`, leaving nothing.
    """
    temporary = os.path.join(incoming, "%d-%d" % (os.getpid(), threading.get_ident()))
    try:
        os.makedirs(os.path.dirname(destination), exist_ok=True)
        with open(temporary, "wb") as target:
            size, sha256 = _receive(hosts, file, url, target.write)
        if size != file.size:
            raise Corrupt("it has %d bytes, not %d" % (size, file.size))
        if file.sha256 and sha256 != file.sha256:
            raise Corrupt("its SHA-256 is %s, not %s" % (sha256, file.sha256))
        os.replace(temporary, destination)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoom("no space left to store %s (%d bytes)" % (file.path, file.size)) from error
        raise
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _receive(hosts: Hosts, file: RemoteFile, url: str, write: Callable[[bytes], object]) -> Tuple[int, str]:
    response, url = _open(hosts, url)
    digest, size = hashlib.sha256(), 0
    is_whole = False
    try:
        while size <= file.size:
            chunk = response.read(CHUNK)
            if not chunk:
                is_whole = True
                break
            digest.update(chunk)
            write(chunk)
            size += len(chunk)
    except (http.client.HTTPException, ConnectionError, socket.timeout) as error:
        raise NetworkTrouble("%s broke off after %d of %d bytes" % (file.path, size, file.size)) from error
    finally:
        if not is_whole or response.will_close:
            hosts.forget(url)
    return size, digest.hexdigest()


def _open(hosts: Hosts, url: str) -> Tuple[http.client.HTTPResponse, str]:
    for _ in range(REDIRECTS):
        response = hosts.request("GET", url, {"Accept-Encoding": "identity"}, None, TIMEOUT)
        if response.status == 200:
            return response, url
        hosts.forget(url)
        if response.status in (301, 302, 303, 307, 308) and response.headers.get("Location"):
            url = urljoin(url, response.headers["Location"])
        elif response.status >= 500 or response.status in (408, 425, 429):
            raise NetworkTrouble("the store answered %d" % response.status)
        else:
            raise AddressRefused("the store answered %d" % response.status)
    raise AddressRefused("too many redirects")
