"""Files from the web, at addresses that are known before: over https from public addresses alone, redirects included.
Only what the administrator has named, and what lies on the same server, may be elsewhere. As in `s3_guard`, it is
checked when the connection is made.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from urllib.parse import urljoin, urlsplit

import urllib3
from urllib3.connectionpool import HTTPSConnectionPool
from urllib3.exceptions import HTTPError, MaxRetryError, NameResolutionError, NewConnectionError, TimeoutError

from yardmaster.errors import YardmasterError
from yardmaster.storage.s3_guard import Address, GuardedHttps, GuardedPool, embedded, is_forbidden

REDIRECTS = 5
PIECE = 256 << 10
_TIMEOUT = urllib3.Timeout(connect=10.0, read=30.0)
_MOVED = (301, 302, 303, 307, 308)


class WebRefused(YardmasterError):
    """The file cannot be had from there."""

    code = "download_failed"


def is_public(address: Address) -> bool:
    """Whether this is an address of the Internet, also of what an IPv6 address carries."""
    return all(one.is_global and not is_forbidden(one) for one in (address, *embedded(address)))


class _PublicHttps(GuardedHttps):
    @staticmethod
    def is_refused(address: Address) -> bool:
        return not is_public(address)


class _PublicPool(HTTPSConnectionPool):
    ConnectionCls = _PublicHttps


@cache
def _public() -> GuardedPool:
    pool = GuardedPool(_TIMEOUT)
    pool.pool_classes_by_scheme = {"https": _PublicPool}
    return pool


@cache
def _named() -> GuardedPool:
    return GuardedPool(_TIMEOUT)


def pieces(address: str, *, most: int, seconds: float, named: str = "") -> Iterator[bytes]:
    """The bytes of the file at this address, at most `most` and within `seconds`. `named`: an address of the server
    that the administrator has named. Raises `WebRefused`."""
    until, size = time.monotonic() + seconds, 0
    host = urlsplit(address).netloc
    try:
        with _opened(address, named) as answer:
            for piece in answer.stream(PIECE, decode_content=False):
                size += len(piece)
                if size > most:
                    raise WebRefused(f"The file from {host} has more than {most} bytes.")
                if time.monotonic() > until:
                    raise WebRefused(f"{host} takes more than {seconds:.0f} seconds to send the file.")
                yield piece
    except (HTTPError, OSError) as error:
        raise WebRefused(f"The portal cannot reach {host}: {_why(error)}.") from error


def _why(error: Exception) -> str:
    cause = error.reason if isinstance(error, MaxRetryError) and error.reason else error
    if isinstance(cause, NameResolutionError):
        return "its name is not known"
    if isinstance(cause, NewConnectionError):
        return "it accepts no connection" if cause.__cause__ else "it is at an address that is not allowed"
    return "it does not answer in time" if isinstance(cause, TimeoutError) else f"{type(cause).__name__}"


@contextmanager
def _opened(address: str, named: str) -> Iterator[urllib3.BaseHTTPResponse]:
    for _ in range(REDIRECTS + 1):
        pool = _pool_for(address, named)
        answer = pool.request("GET", address, preload_content=False, headers={"Accept-Encoding": "identity"})
        if answer.status == 200:
            try:
                yield answer
            finally:
                answer.close()
                answer.release_conn()
            return
        if answer.status not in _MOVED or not answer.headers.get("Location"):
            raise WebRefused(f"{urlsplit(address).hostname} answers {answer.status} for {urlsplit(address).path}.")
        address = urljoin(address, answer.headers["Location"])
    raise WebRefused(f"{urlsplit(address).netloc} redirects more than {REDIRECTS} times.")


def _pool_for(address: str, named: str) -> GuardedPool:
    there = urlsplit(address)
    if named and (there.scheme, there.netloc) == urlsplit(named)[:2]:
        return _named()
    if there.scheme != "https":
        raise WebRefused(f"{there.hostname or 'The server'} is not asked over https.")
    return _public()
