"""Send files to the portal's store through part addresses (docs/protocols.md, section 4): checkpoints and the model.

Parts that are there already are not sent again. Trouble is retried while nothing has worked for too long.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

from yardmaster_runner.answers import PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.http_hosts import Hosts, Moving, NetworkTrouble
from yardmaster_runner.output_files import open_below
from yardmaster_runner.part_answers import LONGEST_ANSWER, refusal
from yardmaster_runner.patience import Backoff, Patience
from yardmaster_runner.task_api import TaskApi

BYTES_PER_CALL = 128 << 20
"""Parts are read for their checksums before they are sent: a few at a time are still in the system's memory then."""
PARTS_PER_CALL = 200
PART_TIMEOUT = 120.0
COMPLETE_LOOKS = 600
TAKEN = ("conflict", "upload_used")
WAITING = "the portal has not put the files together yet"


class UploadFailed(Exception):
    """The files are not in the store, and we have stopped trying. The message says why; `code` is the portal's, where
    it has refused them."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class AlreadyStored(UploadFailed):
    """The portal has something complete in that place, and keeps it."""


@dataclass(frozen=True)
class LocalFile:
    """Bytes that do not change any more: where they are, and how they are called in the store. With `root` the source
    is a path below it, which may have been replaced: no link in it is followed."""

    path: str
    source: str
    size: int
    start: int = 0
    root: str = ""

    def read(self, start: int, size: int) -> bytes:
        """Some of them; fewer where the file has become shorter. Raises OSError."""
        opened = open_below(self.root, self.source) if self.root else os.open(self.source, os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(opened, "rb") as source:
            source.seek(self.start + start)
            return source.read(min(size, self.size - start))


def describe(path: str, source: str) -> LocalFile:
    return LocalFile(path, source, os.path.getsize(source))


@dataclass(frozen=True)
class _Part:
    """Part `number` (from 1) of the file that is `index` in its upload; all but the last have `size` bytes."""

    file: LocalFile
    index: int
    number: int
    size: int

    @property
    def length(self) -> int:
        return min(self.size, self.file.size - (self.number - 1) * self.size)

    def read(self) -> bytes:
        return self.file.read((self.number - 1) * self.size, self.size)


def _lacking(upload: Mapping[str, Any], by_path: Mapping[str, LocalFile]) -> Iterator[_Part]:
    """What the portal does not have yet, file by file."""
    size = int(upload.get("part_size") or 8 << 20)
    for one in upload.get("files") or ():
        done = set(one.get("done") or ())
        for number in range(1, int(one["parts"]) + 1):
            if number not in done:
                yield _Part(by_path[one["path"]], int(one["index"]), number, size)


def _calls(parts: Iterable[_Part]) -> Iterator[List[_Part]]:
    """The parts of each call for addresses, which are sent after it."""
    some: List[_Part] = []
    size = 0
    for one in parts:
        if some and (len(some) == PARTS_PER_CALL or size + one.length > BYTES_PER_CALL):
            yield some
            some, size = [], 0
        some.append(one)
        size += one.length
    if some:
        yield some


class Uploader:
    """Uploads sets of files, one after the other."""

    def __init__(self, api: TaskApi, hosts: Hosts, patience: Patience) -> None:
        self._api = api
        self._hosts = hosts
        self._patience = patience

    def send(
        self,
        kind: str,
        files: Sequence[LocalFile],
        more: Optional[Mapping[str, Any]] = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Returns when the portal has all of them, put together and checked; `more` is told with the files. Raises
        `UploadFailed`, also where `check` does, which is called as long as they are read and before they are put
        together."""
        upload = self.begin(kind, files, more)
        self.fill(upload, files, check)
        self._complete(str(upload["id"]))

    def begin(
        self, kind: str, files: Sequence[LocalFile], more: Optional[Mapping[str, Any]] = None
    ) -> Mapping[str, Any]:
        """Announce files. The upload as the portal describes it. Raises `UploadFailed`."""
        self._patience.renew()
        facts: Dict[str, Any] = {"files": [{"path": f.path, "size": f.size} for f in files], **(more or {})}
        upload: Mapping[str, Any] = self.insist(lambda: self._api.begin_upload(kind, facts))
        return upload

    def fill(self, upload: Mapping[str, Any], files: Sequence[LocalFile], check: Callable[[], None]) -> None:
        """Send what an upload of these files lacks. `check` and what it raises: as of `send`."""
        for some in _calls(_lacking(upload, {file.path: file for file in files})):
            check()
            self._send_parts(str(upload["id"]), some, check)
        check()

    def _complete(self, upload: str) -> None:
        """A large upload is put together by a worker of the portal, which may take its time."""
        for _ in range(COMPLETE_LOOKS):
            if self.insist(lambda: self._api.complete_upload(upload)):
                return
            self._patience.worked()
            self._wait(1.0, WAITING)
        raise UploadFailed(WAITING)

    def _send_parts(self, upload: str, parts: Sequence[_Part], check: Callable[[], None]) -> None:
        wanted = [(one.index, one.number, hashlib.sha256(one.read()).hexdigest()) for one in parts]
        sign = lambda: self._api.part_urls(upload, wanted)  # noqa: E731
        addresses = self.insist(sign)
        backoff = Backoff()
        for one in parts:
            body = one.read()
            while why := self._put(addresses[one.index, one.number], body):
                check()
                self._wait(backoff.next(), "part %d of %s was not stored: %s" % (one.number, one.file.path, why))
                addresses = self.insist(sign)
            backoff.reset()
            self._patience.worked()

    def _put(self, address: Mapping[str, Any], body: bytes) -> str:
        """Why the store has not taken it; empty where it has."""
        url, method = str(address["url"]), str(address.get("method") or "PUT")
        headers = {str(k): str(v) for k, v in (address.get("headers") or {}).items()}
        try:
            response = self._hosts.request(method, url, headers, Moving(body, self._patience.worked), PART_TIMEOUT)
            content = response.read(LONGEST_ANSWER)
        except (NetworkTrouble, OSError, http.client.HTTPException):
            self._hosts.forget(url)
            return "the object store does not answer"
        if not response.isclosed():
            self._hosts.forget(url)  # what was not read must not be taken for the next answer
        # Every store names what it has taken. A page to sign in at does not.
        if 200 <= response.status < 300 and response.headers.get("ETag"):
            return ""
        return refusal(response.status, response.headers.get("Content-Type", ""), content)

    def insist(self, call: Callable[[], Any]) -> Any:
        """The answer of a call to the portal, which is waited for. Raises `UploadFailed`."""
        backoff = Backoff()
        while True:
            try:
                return call()
            except PortalAway as error:
                self._wait(max(backoff.next(), min(error.retry_after, 15.0)), str(error))
            except (PortalRefused, PortalRejected) as error:
                if isinstance(error, PortalRejected) and error.answer.get("code") in TAKEN:
                    raise AlreadyStored(str(error)) from error
                code = str(error.answer.get("code") or "") if isinstance(error, PortalRejected) else ""
                raise UploadFailed(str(error), code) from error

    def _wait(self, seconds: float, why: str) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if not self._patience.may_go_on():
                raise UploadFailed(why)
            time.sleep(min(0.2, seconds))


def files_below(folder: str) -> List[str]:
    """Relative paths of all regular files, sorted. Links are not followed: they may lead anywhere."""
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if os.path.isfile(path) and not os.path.islink(path):
                found.append(os.path.relpath(path, folder).replace(os.sep, "/"))
    return sorted(found)
