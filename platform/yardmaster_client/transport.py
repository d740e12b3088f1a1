"""One connection to the portal: authentication, repeats of what may be repeated, and errors as this package's own.

Not here: what can be asked (`portal` and its parts).
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from yardmaster_client.errors import NotReachable, PortalError

_TRIES = 5
_BUSY = {429, 502, 503, 504}


class Transport:
    """Thread-safe. A POST carries an idempotency key of its own, so every call may be repeated after a break."""

    def __init__(
        self, url: str, token: str = "", *, timeout: float = 30.0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self._sleep = sleep
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx2.Client(base_url=self.url, headers=headers, timeout=timeout)
        # For signed addresses, which may lie elsewhere: without the token. One for all, since making one takes long.
        self._stranger = httpx2.Client(timeout=max(timeout, 120.0))

    def close(self) -> None:
        self._client.close()
        self._stranger.close()

    def get(self, path: str, /, **params: Any) -> Any:
        return self.ask("GET", path, params=params)

    def post(self, path: str, body: object = None) -> Any:
        return self.ask("POST", path, body=body)

    def patch(self, path: str, body: object) -> Any:
        return self.ask("PATCH", path, body=body)

    def put(self, path: str, body: object) -> Any:
        return self.ask("PUT", path, body=body)

    def delete(self, path: str) -> Any:
        return self.ask("DELETE", path)

    def ask(self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: object = None) -> Any:
        """The decoded answer (None when it is empty).

        Raises:
            PortalError: the portal refused. NotReachable: it did not answer, several times.
        """
        headers = {"Idempotency-Key": uuid.uuid4().hex} if method == "POST" else {}
        query = {name: value for name, value in (params or {}).items() if value is not None}
        content: dict[str, Any] = {} if body is None else {"json": body}
        answer = self._repeat(
            lambda: self._client.request(method, self._path(path), params=query or None, headers=headers, **content)
        )
        if answer.status_code >= 400:
            raise PortalError.from_answer(answer.status_code, _decoded(answer))
        return _decoded(answer)

    def pages(self, path: str, /, **params: Any) -> Iterator[dict[str, Any]]:
        """Every row of a list, page after page, as they are asked for."""
        page = self.get(path, **params)
        while True:
            yield from page["results"]
            if not page["next"]:
                return
            following = urlsplit(page["next"])  # the portal's own name of itself may not be how we reach it
            page = self.get(f"{following.path}?{following.query}")

    def download(self, address: str, write: Callable[[bytes], object], **params: Any) -> int:
        """Stream an answer into `write`; returns the number of bytes. Follows the redirect to the object. `address` is
        an API path or a signed URL; the token goes to the portal alone."""
        total = 0
        query = {name: value for name, value in params.items() if value is not None}
        ours = not address.startswith(("http://", "https://")) or address.startswith(f"{self.url}/")
        client = self._client if ours else self._stranger
        try:
            with client.stream("GET", self._path(address), params=query or None, follow_redirects=True) as answer:
                if answer.status_code >= 400:
                    answer.read()
                    raise PortalError.from_answer(answer.status_code, _decoded(answer))
                for chunk in answer.iter_bytes(1 << 18):
                    write(chunk)
                    total += len(chunk)
        except httpx2.TransportError as error:
            raise NotReachable(f"{self.url} broke off: {error}") from error
        return total

    def put_part(self, url: str, data: bytes, headers: Mapping[str, str]) -> str:
        """PUT one part to its signed address (which needs no other credential); returns its ETag."""
        answer = self._repeat(lambda: self._stranger.put(url, content=data, headers=dict(headers)))
        if answer.status_code >= 400:
            raise PortalError.from_answer(answer.status_code, _decoded(answer))
        return str(answer.headers.get("ETag", ""))

    def _repeat(self, call: Callable[[], httpx2.Response]) -> httpx2.Response:
        for attempt in range(1, _TRIES + 1):
            try:
                answer = call()
            except httpx2.TransportError as error:
                if attempt == _TRIES:
                    raise NotReachable(f"{self.url} does not answer: {error or type(error).__name__}") from error
            else:
                # A repeated POST may find its first try still running; its answer comes to the next one.
                still_running = answer.status_code == 409 and attempt > 1
                if attempt == _TRIES or not (answer.status_code in _BUSY or still_running):
                    return answer
            self._sleep(min(0.2 * 2**attempt, 5.0) * random.uniform(0.5, 1.0))
        raise AssertionError("unreachable")

    @staticmethod
    def _path(path: str) -> str:
        return path if path.startswith(("http://", "https://", "/")) else f"/api/v1/{path}"


def _decoded(answer: httpx2.Response) -> Any:
    if not answer.content:
        return None
    try:
        return answer.json()
    except ValueError:
        return answer.text
