"""Signed addresses, of the portal or of an S3 server: to send a part to, and to read an object from.

They need no other credential, so the portal's token never goes there. Data of any size passes here, which is why this
is `urllib3` and not the HTTP client of the API: that one takes twice the processor time for the same bytes.
Not here: repeats (`transport`).
"""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2
import urllib3

NoAnswer = urllib3.exceptions.HTTPError
_CHUNK = 1 << 20
_CONNECTIONS = 16


@dataclass(frozen=True)
class Answer:
    """What came back: the status, the headers, and the text of an error (of a success nothing)."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes = b""


class SignedAddresses:
    """Thread-safe. Its calls raise `NoAnswer` where the other side does not answer."""

    def __init__(self, seconds: float) -> None:
        self._options: dict[str, Any] = {
            "timeout": urllib3.Timeout(connect=seconds, read=seconds),
            "retries": False,
            "maxsize": _CONNECTIONS,
            "ssl_context": httpx2.create_ssl_context(),  # trust whom the client of the API trusts
        }
        self._manager = cache(self._new_manager)

    def put(self, url: str, data: bytes, headers: Mapping[str, str]) -> Answer:
        """Send `data` with exactly these headers."""
        answer = self._of(url).request("PUT", url, body=data, headers=dict(headers))
        return Answer(answer.status, answer.headers, answer.data)

    def get(self, url: str, write: Callable[[bytes], object]) -> Answer:
        """Hand the object to `write`, piece by piece. An error's text is not handed over."""
        answer = self._of(url).request("GET", url, preload_content=False, headers={"Accept-Encoding": "identity"})
        try:
            if answer.status >= 300:
                return Answer(answer.status, answer.headers, answer.read(_CHUNK))
            for chunk in answer.stream(_CHUNK):
                write(chunk)
            return Answer(answer.status, answer.headers)
        except BaseException:
            answer.close()  # what was not read must not be taken for the next answer
            raise
        finally:
            answer.release_conn()

    def close(self) -> None:
        self._manager.cache_clear()

    def _of(self, url: str) -> urllib3.PoolManager:
        parts = urlsplit(url)
        proxy = urllib.request.getproxies().get(parts.scheme, "")
        is_direct = not proxy or urllib.request.proxy_bypass(parts.netloc)
        return self._manager("" if is_direct else proxy)

    def _new_manager(self, proxy: str) -> urllib3.PoolManager:
        return urllib3.ProxyManager(proxy, **self._options) if proxy else urllib3.PoolManager(**self._options)
