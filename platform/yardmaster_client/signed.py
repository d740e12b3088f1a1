"""Signed addresses, of the portal or of an S3 server: to send a part to, and to read an object from.

They need no other credential, so the portal's token never goes there. Data of any size and any number of files passes
here, which is why this is not the HTTP client of the API: that one takes a multiple of the processor time.
Not here: repeats (`transport`).
"""

from __future__ import annotations

import contextlib
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from http.client import HTTPResponse
from typing import cast
from urllib.parse import urlsplit

import httpx2
import urllib3

from yardmaster_client.connections import Body, Connections, FilePart, NoAnswer, read, take
from yardmaster_runner.receiving import Buffer, Incoming

_CHUNK = 1 << 20
_CONNECTIONS = 16


class Passing:
    """A target of bytes that are handed on, and counted."""

    def __init__(self, write: Callable[[Buffer], object]) -> None:
        self.size = 0
        self._write = write

    def write(self, data: Buffer) -> None:
        self._write(data)
        self.size += len(data)


Target = Passing | Incoming


@dataclass(frozen=True)
class Answer:
    """What came back: the status, the headers, and the text of an error (of a success nothing)."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes = b""


class ObjectChanged(Exception):
    """The object is not the one that was asked for."""


class NotContinued(NoAnswer):
    """The server does not send an object from the middle on."""


class SignedAddresses:
    """Thread-safe. Its calls raise `NoAnswer` where the other side does not answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._context = httpx2.create_ssl_context()  # trust whom the client of the API trusts
        self._direct = Connections(seconds, self._context)
        self._proxy_of = cache(_proxy_of)
        self._behind = cache(self._new_manager)

    def put(self, url: str, data: Body, headers: Mapping[str, str]) -> Answer:
        """Send `data` with exactly these headers."""
        if proxy := self._proxy(url):
            body = data.read() if isinstance(data, FilePart) else data
            with _urllib3_translated():
                sent = self._behind(proxy).request("PUT", url, body=body, headers=dict(headers))
                return Answer(sent.status, sent.headers, sent.data)
        with self._direct.answer("PUT", url, data, headers) as answer:
            content = read(answer, _CHUNK)
            return Answer(answer.status, _headers(answer), content)

    def get(
        self, url: str, target: Target, etag: str = "", begun: Callable[[str], object] = lambda etag: None
    ) -> Answer:
        """Add what `target` lacks of the object, from byte `target.size` on; with `etag` (quoted, as servers send it)
        only of the object that has it. `begun` is called with the object's ETag before its bytes come. An error's text
        is not added. Raises `ObjectChanged` where a server that does not know `If-Match` answers with another
        object; others answer 412."""
        first = target.size
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={first}-"} if first else {})
        headers |= {"If-Match": etag} if etag else {}
        check = partial(_begin, first, etag, begun)
        if proxy := self._proxy(url):
            return self._get_behind(proxy, url, target, headers, check)
        with self._direct.answer("GET", url, None, headers) as answer:
            if answer.status >= 300:
                return Answer(answer.status, _headers(answer), read(answer, _CHUNK))
            if not check(answer.status, _headers(answer)):
                raise ObjectChanged
            if isinstance(target, Incoming):
                is_plain = url.startswith("http://")
                while take(answer, target, is_plain, self._seconds):
                    pass
            else:
                while chunk := read(answer, _CHUNK):
                    target.write(chunk)
            return Answer(answer.status, _headers(answer))

    def close(self) -> None:
        self._direct.close()
        self._behind.cache_clear()

    def _proxy(self, url: str) -> str:
        parts = urlsplit(url)
        return self._proxy_of(parts.scheme, parts.netloc)

    def _get_behind(
        self,
        proxy: str,
        url: str,
        target: Target,
        headers: Mapping[str, str],
        check: Callable[[int, Mapping[str, str]], bool],
    ) -> Answer:
        with _urllib3_translated():
            answer = self._behind(proxy).request("GET", url, preload_content=False, headers=dict(headers))
        try:
            with _urllib3_translated():
                if answer.status >= 300:
                    return Answer(answer.status, answer.headers, answer.read(_CHUNK))
            if not check(answer.status, answer.headers):
                raise ObjectChanged
            chunks = answer.stream(_CHUNK, decode_content=False)
            while True:
                with _urllib3_translated():
                    chunk = next(chunks, b"")
                if not chunk:
                    return Answer(answer.status, answer.headers)
                target.write(chunk)
        except BaseException:
            answer.close()  # what was not read must not be taken for the next answer
            raise
        finally:
            answer.release_conn()

    def _new_manager(self, proxy: str) -> urllib3.ProxyManager:
        timeout = urllib3.Timeout(connect=self._seconds, read=self._seconds)
        return urllib3.ProxyManager(
            proxy, timeout=timeout, retries=False, maxsize=_CONNECTIONS, ssl_context=self._context
        )


def _headers(answer: HTTPResponse) -> Mapping[str, str]:
    return cast(Mapping[str, str], answer.headers)  # found whatever their case is


@contextlib.contextmanager
def _urllib3_translated() -> Iterator[None]:
    try:
        yield
    except urllib3.exceptions.HTTPError as error:
        raise NoAnswer(str(error)) from error


def _begin(first: int, etag: str, begun: Callable[[str], object], status: int, headers: Mapping[str, str]) -> bool:
    """Whether these are the bytes that were asked for; not where the object is another one. Raises
    `NotContinued`."""
    found = headers.get("ETag", "")
    if etag and found and found.removeprefix("W/") != etag.removeprefix("W/"):
        return False
    place = headers.get("Content-Range", "")
    if first and (status != 206 or (place and not place.startswith(f"bytes {first}-"))):
        raise NotContinued("it was interrupted, and does not continue in the middle")
    begun(found)
    return True


def _proxy_of(scheme: str, netloc: str) -> str:
    """The proxy of the environment for this server, or none."""
    proxy = urllib.request.getproxies().get(scheme, "")
    return "" if not proxy or urllib.request.proxy_bypass(netloc) else proxy
