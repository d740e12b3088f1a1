"""Connections to S3 servers that others have named: never to an address of the link, where clouds offer credentials to
anyone who asks from inside. It is checked when the connection is made, so a name that changes its address gains
nothing. What such a server answers is bounded in bytes and in the time for which it is waited for, however it sends it.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import time
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, NewConnectionError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_METADATA = frozenset(map(ipaddress.ip_address, ("100.100.100.200", "192.0.0.192", "fd00:ec2::254", "168.63.129.16")))

PATIENCE = 30.0
SLOWEST = 4 << 10
MOST_HEAD = 256 << 10
MOST_ANSWER = 16 << 20
"""A page of a listing: a thousand keys of at most 1,024 bytes, written as `%41` each, and what is said of them."""


def is_forbidden(address: Address) -> bool:
    """Whether nothing is ever connected to this: link-local, multicast, unspecified, and the metadata services that
    have other addresses."""
    return any(
        one.is_link_local or one.is_multicast or one.is_unspecified or one in _METADATA
        for one in (address, *embedded(address))
    )


def embedded(address: Address) -> list[Address]:
    """The IPv4 address that a router or the system takes out of an IPv6 one: mapped, 6to4, or translated (NAT64)."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    translated = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
    return [one for one in (address.ipv4_mapped, address.sixtofour, translated) if one is not None]


class _Paced(io.RawIOBase):
    """The bytes of one answer. Raises `TimeoutError` where they are waited for too long: `PATIENCE` seconds in all, and
    one more for every `SLOWEST` bytes. `most` bounds their number, where it is set."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self._waited = 0.0
        self._received = 0
        self.most: int | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        begun = time.monotonic()
        count = self._raw.readinto(buffer)
        self._waited += time.monotonic() - begun
        self._received += count or 0
        if self._waited > PATIENCE + self._received / SLOWEST:
            raise TimeoutError("the server sends too slowly")
        if self.most is not None and self._received > self.most:
            raise ConnectionError(f"the head of the answer has more than {self.most} bytes")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *given: Any, **more: Any) -> None:
        super().__init__(sock, *given, **more)
        self._paced = _Paced(self.fp.detach())  # of a buffer that has read nothing
        self.fp = io.BufferedReader(self._paced)

    def begin(self) -> None:
        """Read the head, and those that announce another."""
        self._paced.most = MOST_HEAD
        super().begin()
        self._paced.most = None


class _Guarded:
    response_class: type[http.client.HTTPResponse] = _Answer

    @staticmethod
    def is_refused(address: Address) -> bool:
        return is_forbidden(address)

    def _new_conn(self) -> socket.socket:
        sock: socket.socket = super()._new_conn()  # type: ignore[misc]  # of the connection it is mixed into
        peer = ipaddress.ip_address(str(sock.getpeername()[0]).partition("%")[0])
        if self.is_refused(peer):
            sock.close()
            raise NewConnectionError(self, "connections to addresses of this kind are not allowed")  # type: ignore[arg-type]
        return sock


class _Http(_Guarded, HTTPConnection):
    pass


class GuardedHttps(_Guarded, HTTPSConnection):
    pass


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = GuardedHttps


class GuardedPool(urllib3.PoolManager):
    """Connections that look where they lead. It follows no redirect, and waits for no time that a server names. What is
    not read as a stream has `MOST_ANSWER` bytes at most: else `HTTPError`."""

    def __init__(self, timeout: urllib3.Timeout) -> None:
        retries = urllib3.Retry(
            total=1, redirect=0, status=0, raise_on_redirect=False, raise_on_status=False,
            respect_retry_after_header=False,
        )  # fmt: skip
        super().__init__(maxsize=32, timeout=timeout, retries=retries)
        self.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}

    def urlopen(  # type: ignore[override]
        self, method: str, url: str, redirect: bool = True, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        is_stream = not options.pop("preload_content", True)
        answer = super().urlopen(method, url, redirect, preload_content=False, decode_content=False, **options)
        if is_stream and answer.status < 300:
            return answer
        try:
            data = answer.read(MOST_ANSWER + 1)
            if len(data) > MOST_ANSWER:
                raise HTTPError(f"the answer has more than {MOST_ANSWER} bytes")
        except BaseException:
            answer.close()
            raise
        finally:
            answer.release_conn()
        return urllib3.HTTPResponse(
            io.BytesIO(data), answer.headers, answer.status, decode_content=False, enforce_content_length=False,
            request_method=method,
        )  # fmt: skip
