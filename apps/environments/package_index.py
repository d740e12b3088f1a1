"""The package index that the administrator has chosen, as tasks reach it: through the portal, which knows its address
and its password. Tasks need no way out, and learn of no file but those that the index names.

The protocol is the simple repository API in its JSON form (PEP 691); an index that answers in HTML (PEP 503) is read,
too. Pages are bounded and files pass piece by piece. Not here: the addresses for tasks (`apps.jobs.task_api`).
"""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import httpx2
from django.conf import settings
from django.core import signing

from apps.errors import Conflict, NotFound
from yardmaster.errors import Unavailable

MOST_PAGE = 16 << 20
MOST_FILES = 20_000
TIMEOUT = httpx2.Timeout(30.0, connect=10.0)
AT_ONCE = 8
"""Files that pass through this process at the same time; more wait."""
PATIENCE = 60.0
PIECE = 256 << 10
PROJECT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
JSON_TYPE = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{JSON_TYPE}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_SALT = "yardmaster.package-file"
_FACTS = ("filename", "hashes", "requires-python", "yanked", "core-metadata", "dist-info-metadata", "size", "gpg-sig")
_passing = threading.BoundedSemaphore(AT_ONCE)


def project_page(project: str, file_address: Any) -> dict[str, Any]:
    """The files of a project, as PEP 691 lists them. `file_address(token, filename)` gives the address that a task
    reads one from. Raises `NotFound`, `Conflict` (`packages_offline`) and `Unavailable`."""
    if not PROJECT.fullmatch(project):
        raise NotFound(f"{project[:100]!r} is no name of a package.")
    address = f"{_base()}/{re.sub(r'[-_.]+', '-', project).lower()}/"
    with _asked(address, {"Accept": _ACCEPT}) as answer:
        content = _read(answer)
        kind, base = answer.headers.get("Content-Type", ""), str(answer.url)
    files = _from_json(content) if "json" in kind else _from_html(content.decode("utf-8", "replace"))
    listed = []
    for one in files[:MOST_FILES]:
        url = urldefrag(urljoin(base, one.pop("url", "")))[0]
        filename = str(one.get("filename", ""))
        if filename and urlsplit(url).scheme in ("http", "https"):
            token = signing.dumps(url, salt=_SALT, compress=True)
            listed.append({"url": file_address(token, filename), **one})
    return {"meta": {"api-version": "1.0"}, "name": project, "files": listed}


@contextlib.contextmanager
def file_opened(token: str, suffix: str) -> Iterator[httpx2.Response]:
    """The answer with a file that a page named, or with its metadata (`suffix`: `.metadata`).
    Raises as `project_page`."""
    try:
        url = signing.loads(token, salt=_SALT, max_age=86_400)
    except signing.BadSignature as error:
        raise NotFound("This address of a package is not valid any more.") from error
    if not _passing.acquire(timeout=PATIENCE):
        raise Unavailable("Too many packages are being fetched. Try again in a moment.")
    try:
        with _asked(str(url) + suffix, {"Accept-Encoding": "identity"}) as answer:
            yield answer
    finally:
        _passing.release()


@dataclass(frozen=True)
class PassedFile:
    """A file that is being passed on: how long it is (None: the index does not say), and its bytes."""

    size: int | None
    pieces: Iterator[bytes]


def file_passed(token: str, suffix: str) -> PassedFile:
    """The file, opened. Raises as `project_page`; `pieces` raise `Unavailable` in the middle where the index breaks off
    or sends too much. They are to be read to their end, or closed."""
    read = _pieces(token, suffix)
    size = next(read)
    return PassedFile(size if isinstance(size, int) else None, read)  # type: ignore[arg-type]


def _pieces(token: str, suffix: str) -> Iterator[bytes | int | None]:
    """First the size, then the bytes."""
    most, size = settings.YARDMASTER_PACKAGES_LIMIT, 0
    with file_opened(token, suffix) as answer:
        said = answer.headers.get("Content-Length", "")
        is_plain = answer.headers.get("Content-Encoding", "identity") == "identity"
        yield int(said) if is_plain and said.isascii() and said.isdigit() else None
        for piece in answer.iter_raw(PIECE):
            size += len(piece)
            if size > most:
                raise Unavailable("The file is larger than YARDMASTER_PACKAGES_LIMIT.")
            yield piece


def _base() -> str:
    index: str = settings.YARDMASTER_PACKAGE_INDEX
    if not index:
        raise Conflict(
            "This portal installs no packages: it is offline.",
            "packages_offline",
            remedy="Use what the task image has, or ask an administrator to set YARDMASTER_PACKAGE_INDEX.",
        )
    return index.rstrip("/")


@contextlib.contextmanager
def _asked(url: str, headers: dict[str, str]) -> Iterator[httpx2.Response]:
    _base()
    try:
        with (
            httpx2.Client(verify=_certificates(), follow_redirects=True, timeout=TIMEOUT) as client,
            client.stream("GET", url, headers=headers) as answer,
        ):
            if answer.status_code in (404, 410):
                raise NotFound("The package index has no such package.")
            if answer.status_code != 200:
                raise Unavailable(f"The package index answered {answer.status_code}.")
            yield answer
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise Unavailable(f"The package index does not answer ({type(error).__name__}).") from error


@cache
def _certificates() -> ssl.SSLContext:
    """Those that the machine trusts. To read them takes longer than a request."""
    return ssl.create_default_context()


def _read(answer: httpx2.Response) -> bytes:
    content = bytearray()
    for piece in answer.iter_bytes(PIECE):
        content += piece
        if len(content) > MOST_PAGE:
            raise Unavailable(f"A page of the package index has more than {MOST_PAGE >> 20} MiB.")
    return bytes(content)


def _from_json(content: bytes) -> list[dict[str, Any]]:
    try:
        files = json.loads(content)["files"]
        return [{"url": str(one["url"]), **{key: one[key] for key in _FACTS if key in one}} for one in files]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unavailable("The package index answered what is no page of an index.") from error


def _from_html(text: str) -> list[dict[str, Any]]:
    reader = _Anchors()
    reader.feed(text)
    return reader.files


class _Anchors(HTMLParser):
    """The links of a page as PEP 503 describes them."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[dict[str, Any]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag != "a" or not said.get("href") or len(self.files) >= MOST_FILES:
            return
        url, fragment = urldefrag(said["href"])
        kind, _, digest = fragment.partition("=")
        found: dict[str, Any] = {"url": url, "filename": unquote(urlsplit(url).path.rpartition("/")[2])}
        found["hashes"] = {kind: digest} if digest and kind in ("sha256", "sha384", "sha512") else {}
        if requires := said.get("data-requires-python"):
            found["requires-python"] = requires
        if "data-yanked" in said:
            found["yanked"] = said["data-yanked"] or True
        self.files.append(found)
