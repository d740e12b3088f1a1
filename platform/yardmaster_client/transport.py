"""One connection to the portal: authentication, repeats of what may be repeated, and errors as this package's own.

Not here: what can be asked (`portal` and its parts).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx2

from yardmaster_client import notices
from yardmaster_client.connections import Body, NoAnswer
from yardmaster_client.errors import NotReachable, PortalError, store_error
from yardmaster_client.signed import NotContinued, ObjectChanged, SignedAddresses, Target
from yardmaster_client.unsigned_logs import keep_unsigned
from yardmaster_client.version import ANSWERED, API, HEADER, NOTICE, VERSION, NewerThanPortal, newer_than

_TRIES = 5
_BUSY = {429, 502, 503, 504}
_LONGEST_PAUSE = 60.0
"""Seconds that a call waits where the portal asks for it; told to wait longer, it fails."""


class _Answered(Protocol):
    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


T = TypeVar("T", bound=_Answered)


class Transport:
    """Thread-safe. A POST carries an idempotency key of its own, so every call may be repeated after a break."""

    def __init__(
        self, url: str, token: str = "", *, timeout: float = 30.0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self._sleep = sleep
        self._is_compared = False
        keep_unsigned()
        headers = {"User-Agent": f"yardmaster-client/{VERSION}", HEADER: f"{VERSION}; api={API}"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if _is_a_tasks(self.url):
            headers["Yardmaster-Audience"] = "tasks"  # object stores may be elsewhere for tasks than for browsers
        self._client = httpx2.Client(base_url=self.url, headers=headers, timeout=timeout)
        self._signed = SignedAddresses(max(timeout, 120.0))

    def close(self) -> None:
        self._client.close()
        self._signed.close()

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
        """The decoded answer (None when it is empty). A body of bytes is JSON already.

        Raises:
            PortalError: the portal refused. NotReachable: it did not answer, several times.
        """
        headers = {"Idempotency-Key": uuid.uuid4().hex} if method == "POST" else {}
        query = {name: value for name, value in (params or {}).items() if value is not None}
        content: dict[str, Any] = {} if body is None else {"json": body}
        if isinstance(body, bytes):
            headers["Content-Type"] = "application/json"
            content = {"content": body}
        answer = self._repeat(
            lambda: self._client.request(method, self._path(path), params=query or None, headers=headers, **content)
        )
        self._compare(answer.headers.get(ANSWERED, ""))
        notices.received(answer.headers.get(NOTICE, ""))
        if answer.status_code >= 400:
            raise PortalError.from_answer(answer.status_code, _decoded(answer.content))
        return _decoded(answer.content)

    def _compare(self, said: str) -> None:
        """Warn, once, of a portal that is older than this client."""
        if said and not self._is_compared:
            self._is_compared = True
            if (portal := newer_than(said)) is not None:
                warnings.warn(NewerThanPortal(self.url, portal), stacklevel=4)

    def pages(self, path: str, /, **params: Any) -> Iterator[dict[str, Any]]:
        """Every row of a list, page after page, as they are asked for."""
        for rows in self.whole_pages(path, **params):
            yield from rows

    def whole_pages(self, path: str, /, **params: Any) -> Iterator[list[dict[str, Any]]]:
        """The same as lists, one per request."""
        page = self.get(path, **params)
        while True:
            yield page["results"]
            if not page["next"]:
                return
            following = urlsplit(page["next"])  # the portal's own name of itself may not be how we reach it
            page = self.get(f"{following.path}?{following.query}")

    def download(self, address: str, target: Target, etag: str = "", **params: Any) -> None:
        """Stream an answer into `target`. Follows the redirect to the object. `address` is an API path or a signed
        URL, of the portal too; the token goes to the API alone. `etag`: as of `read_signed`."""
        url = address
        if not address.startswith(("http://", "https://")) or address.startswith(f"{self.url}/api/"):
            query = {name: value for name, value in params.items() if value is not None}
            try:
                url = self._read_or_redirect(self._path(address), query, target)
            except httpx2.TransportError as error:
                raise NotReachable(f"{self.url} closed the connection: {error}") from error
        if url:
            self.read_signed(url, target, etag)

    def _read_or_redirect(self, path: str, query: Mapping[str, Any], target: Target) -> str:
        """Read an answer of the portal, or return the address of the object that it leads to."""
        with self._stream(path, query) as answer:
            if answer.has_redirect_location:
                return urljoin(str(answer.url), answer.headers["Location"])
            if answer.status_code >= 400:
                raise PortalError.from_answer(answer.status_code, _decoded(answer.read()))
            received = target.size  # of an earlier run; the portal sends all of it
            for chunk in answer.iter_bytes(1 << 18):
                target.write(chunk[received:])
                received = max(0, received - len(chunk))
        return ""

    def read_signed(self, url: str, target: Target, etag: str = "") -> None:
        """Stream what a signed URL leads to into `target`. Needs no other credential. What is interrupted continues
        where it stopped, in the same object: the one with `etag` where it is given, else the one that came first.

        Raises:
            PortalError: it was refused, the object is another one (`changed`), or the server does not continue what
                was received before this call (`not_continued`).
            NotReachable: it was interrupted several times without a byte between.
        """
        kept = target.size
        before, attempt = kept, 1
        known = f'"{etag}"' if etag else ""

        def begun(found: str) -> None:
            nonlocal known
            known = known or ("" if found.startswith("W/") else found)

        while True:
            answer = None
            try:
                answer = self._signed.get(url, target, known, begun)
            except ObjectChanged:
                raise _changed() from None
            except NoAnswer as error:
                if kept and target.size == kept and isinstance(error, NotContinued):
                    message = f"{_server(url)} does not continue a file in the middle."
                    raise PortalError(502, "not_continued", message, "Download it again.") from None
                attempt, before = (attempt if target.size == before else 1), target.size
                if attempt == _TRIES:
                    raise NotReachable(f"{_server(url)} closed the connection: {error}") from error
            else:
                if answer.status_code not in _BUSY or attempt == _TRIES or _asked_to_wait(answer) > _LONGEST_PAUSE:
                    break
            self._sleep(_pause(answer, attempt))
            attempt += 1
        if answer.status_code == 412:
            raise _changed()
        if answer.status_code >= 300:
            raise store_error(answer.status_code, _decoded(answer.content))

    @contextlib.contextmanager
    def _stream(self, path: str, query: Mapping[str, Any]) -> Iterator[httpx2.Response]:
        """An answer that is read piece by piece; a portal that asks to wait is asked again."""
        for attempt in range(1, _TRIES + 1):
            with self._client.stream("GET", path, params=query or None) as answer:
                pause = _asked_to_wait(answer)
                if answer.status_code not in _BUSY or attempt == _TRIES or not 0 < pause <= _LONGEST_PAUSE:
                    yield answer
                    return
            self._sleep(_pause(answer, attempt))

    def put_part(self, url: str, data: Body, headers: Mapping[str, str]) -> str:
        """PUT one part to its signed address (which needs no other credential); returns its ETag."""
        answer = self._repeat(lambda: self._signed.put(url, data, headers), _server(url))
        if answer.status_code >= 300:
            raise store_error(answer.status_code, _decoded(answer.content))
        return str(answer.headers.get("ETag", ""))

    def _repeat(self, call: Callable[[], T], server: str = "") -> T:
        for attempt in range(1, _TRIES + 1):
            answer = None
            try:
                answer = call()
            except (httpx2.TransportError, NoAnswer) as error:
                if attempt == _TRIES:
                    message = f"{server or self.url} does not answer: {error or type(error).__name__}"
                    raise NotReachable(message) from error
            else:
                # A repeated POST may find its first try still running; its answer comes to the next one.
                still_running = answer.status_code == 409 and attempt > 1
                is_busy = answer.status_code in _BUSY and _asked_to_wait(answer) <= _LONGEST_PAUSE
                if attempt == _TRIES or not (is_busy or still_running):
                    return answer
            self._sleep(_pause(answer, attempt))
        raise AssertionError("unreachable")

    @staticmethod
    def _path(path: str) -> str:
        return path if path.startswith(("http://", "https://", "/")) else f"/api/v1/{path}"


def _is_a_tasks(url: str) -> bool:
    """Whether this runs in a task, a notebook's too, of the portal with this address."""
    return "YARDMASTER_WORK_DIR" in os.environ and os.environ.get("YARDMASTER_URL", "").rstrip("/") == url


def _changed() -> PortalError:
    remedy = "Download it again; scan the dataset of a registered bucket again, and download its new version."
    return PortalError(502, "changed", "The object was changed in its store.", remedy)


def _asked_to_wait(answer: _Answered | None) -> float:
    """Seconds, as `Retry-After` says them; 0 where it says none."""
    text = str(answer.headers.get("Retry-After", "")) if answer is not None else ""
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _pause(answer: _Answered | None, attempt: int) -> float:
    """As long as the portal asks for, else ever longer."""
    longer: float = min(0.2 * 2**attempt, 5.0) * random.uniform(0.5, 1.0)
    return max(_asked_to_wait(answer), longer)


def _decoded(content: bytes) -> Any:
    if not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")


def _server(url: str) -> str:
    """Without what signs it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
