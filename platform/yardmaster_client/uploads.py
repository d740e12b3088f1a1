"""Putting files into the portal: parts side by side, with progress, going on where an earlier try stopped.

Not here: what the upload becomes (`stores`).
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from yardmaster_client.connections import Body, FilePart
from yardmaster_client.errors import FieldError, PortalError
from yardmaster_client.local_files import LocalFile, announcements
from yardmaster_client.models import Upload, read
from yardmaster_client.transport import Transport

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all) after each part, from any thread."""

_PARALLEL = 4
_SIGNED_FIRST, _SIGNED_AT_ONCE = 100, 1_000
_FIRST_BYTES, _SIGNED_BYTES = 32 << 20, 128 << 20
"""Parts and bytes that are signed with one request. The first one is small: sending waits for it."""
_SMALL, _GROUP = 64 << 10, 16
"""Parts up to this size are handed to a sending thread several at a time, and kept in memory from when they are hashed:
to open their files again would cost more. Larger ones are sent from their files (`FilePart`)."""
_KEPT_BYTES = 16 << 20
"""The most that is kept so of one batch."""


def upload(
    transport: Transport,
    kind: str,
    files: Sequence[LocalFile],
    *,
    namespace: str | None = None,
    unpack: bool = False,
    progress: Progress = lambda done, total: None,
) -> str:
    """Upload `files` and complete; returns the upload's id, good for one version.

    When this raises or the program dies, what was sent stays at the portal for a day, and the same call, also of
    another process, sends only the rest: the upload is remembered in the user's cache folder.
    """
    memory = _Memory(transport.url, kind, namespace, files, unpack)
    state = memory.unused_upload(transport)
    is_new = state is None
    if state is None:
        body = {"kind": kind, "files": [one.as_json() for one in next(announcements(files))]}
        state = read(Upload, transport.post("uploads/", body | ({"namespace": namespace} if namespace else {})))
        memory.keep(state.id)
    if state.state == "open":
        _announce(transport, state, files)
        _send(transport, state, files, is_new, progress)
        state = read(Upload, transport.post(f"uploads/{state.id}/complete/", {"unpack": unpack}))
    _wait_until_complete(transport, state)
    memory.forget()
    return state.id


class _Memory:
    """Which upload of exactly these files is under way, in a small file named after all that makes it the same."""

    def __init__(self, url: str, kind: str, namespace: str | None, files: Sequence[LocalFile], unpack: bool) -> None:
        what = hashlib.sha256(json.dumps([url, kind, namespace, unpack]).encode())
        for one in files:
            what.update(json.dumps([one.path, one.size, one.source.stat().st_mtime_ns]).encode())
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._file = base / "yardmaster" / "uploads" / what.hexdigest()

    def unused_upload(self, transport: Transport) -> Upload | None:
        """The upload to continue with; None when there is none, or the portal no longer has it."""
        try:
            upload_id = self._file.read_text().strip()
            state = read(Upload, transport.get(f"uploads/{upload_id}/"))
        except (OSError, PortalError):
            return None
        # One that became a version is not shown any more: "complete" was completed after its client was killed.
        return state if state.state in ("open", "completing", "complete") else None

    def keep(self, upload_id: str) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(upload_id)
        except OSError:
            return  # without a cache folder a broken upload starts again, which is no reason to refuse it

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Part:
    """Part `number` (from 1) of the file that is `index` in its upload: `size` bytes from `start`."""

    file: LocalFile
    index: int
    number: int
    start: int
    size: int

    @property
    def content(self) -> FilePart:
        return FilePart(os.path.join(self.file.folder, self.file.path), self.start, self.size)


def _announce(transport: Transport, state: Upload, files: Sequence[LocalFile]) -> None:
    """Announce the files that the portal does not know yet."""
    known = state.file_count or len(state.files)
    for some in announcements(files, known):
        transport.post(f"uploads/{state.id}/files/", {"after": known, "files": [one.as_json() for one in some]})
        known += len(some)


def _send(transport: Transport, state: Upload, files: Sequence[LocalFile], is_new: bool, progress: Progress) -> None:
    """Send the parts that the portal lacks, some side by side, while the next ones are read and signed."""
    total = sum(file.size for file in files)
    lock = Lock()
    done = 0

    def sent(size: int) -> None:
        nonlocal done
        with lock:
            done += size
            progress(done, total)

    def lacking() -> Iterator[_Part]:
        for index, file in enumerate(files):
            there = frozenset() if is_new else next(known)
            for part in _parts(state, index, file):
                if part.number in there:
                    sent(part.size)
                else:
                    yield part

    def send(parts: Sequence[_SignedPart]) -> None:
        for part in parts:
            try:
                _send_part(transport, state.id, part)
            except PortalError as error:
                raise error.at(part.part.file.path) from None
            sent(part.part.size)

    known = _arrived(transport, state, len(files))
    sent(0)
    with ThreadPoolExecutor(_PARALLEL) as senders, ThreadPoolExecutor(1) as signers:
        batches = in_order(signers, partial(_sign, transport, state.id), _batches(lacking()), ahead=1)
        groups = _grouped(chain.from_iterable(batches))
        deque(in_order(senders, send, groups, ahead=2 * _PARALLEL), maxlen=0)


def _arrived(transport: Transport, state: Upload, count: int) -> Iterator[frozenset[int]]:
    """Of each file, in order, the parts that the portal has; of very many it says so by page."""
    if state.files:
        yield from (frozenset(file["done"]) for file in state.files)
    following: int | None = len(state.files) if len(state.files) < count else None
    while following is not None:
        page = transport.get(f"uploads/{state.id}/files/", first=following)
        yield from (frozenset(file["done"]) for file in page["results"])
        following = page["next"]


def _parts(state: Upload, index: int, file: LocalFile) -> Iterator[_Part]:
    for number, start in enumerate(range(0, file.size, state.part_size), start=1):
        yield _Part(file, index, number, start, min(state.part_size, file.size - start))


def in_order(pool: ThreadPoolExecutor, work: Callable[[T], R], items: Iterable[T], *, ahead: int) -> Iterator[R]:
    """`work(item)` of each item, begun while up to `ahead` earlier results were not taken yet: that many are held in
    memory. What a piece of work raises is raised here, and nothing is begun after that."""
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for one in waiting:
            one.cancel()


def one_ahead(items: Iterable[T]) -> Iterator[T]:
    """The items, each made by a thread while the one before is worked on."""
    source = iter(items)
    end: Any = object()
    with ThreadPoolExecutor(1) as maker:
        following = maker.submit(next, source, end)
        while (item := following.result()) is not end:
            following = maker.submit(next, source, end)
            yield item


def _batches(parts: Iterable[_Part]) -> Iterator[list[_Part]]:
    """As many parts as are signed with one request: few large ones, since what is sent waits for the first of them."""
    batch: list[_Part] = []
    size, most, largest = 0, _SIGNED_FIRST, _FIRST_BYTES
    for part in parts:
        if batch and (len(batch) == most or size + part.size > largest):
            yield batch
            batch, size, most, largest = [], 0, _SIGNED_AT_ONCE, _SIGNED_BYTES
        batch.append(part)
        size += part.size
    if batch:
        yield batch


@dataclass(frozen=True, slots=True)
class _SignedPart:
    """A part, how it was asked for, where to send it, and what: its bytes, or where they are."""

    part: _Part
    asked: dict[str, Any]
    address: dict[str, Any]
    data: Body


def _sign(transport: Transport, upload_id: str, batch: Sequence[_Part]) -> list[_SignedPart]:
    asked: list[dict[str, Any]] = []
    contents: list[Body] = []
    left = _KEPT_BYTES
    for part in batch:
        content: Body = part.content
        left -= part.size if part.size <= _SMALL else 0
        if part.size <= _SMALL and left >= 0:
            content = part.content.read()
        asked.append({"file": part.index, "part": part.number, "sha256": _sha256(content)})
        contents.append(content)
    addresses = transport.post(f"uploads/{upload_id}/parts/", {"parts": asked})["urls"]
    return [_SignedPart(*one) for one in zip(batch, asked, addresses, contents, strict=True)]


def _sha256(content: Body) -> str:
    found = hashlib.sha256()
    for piece in content.pieces() if isinstance(content, FilePart) else (content,):
        found.update(piece)
    return found.hexdigest()


def _grouped(parts: Iterable[_SignedPart]) -> Iterator[list[_SignedPart]]:
    """Small parts several at a time, others one by one: handing over costs as much as sending a small one."""
    some: list[_SignedPart] = []
    for part in parts:
        some.append(part)
        if part.part.size > _SMALL or len(some) == _GROUP:
            yield some
            some = []
    if some:
        yield some


def _send_part(transport: Transport, upload_id: str, part: _SignedPart) -> None:
    """The store refuses bytes that are not those that were signed."""
    try:
        transport.put_part(part.address["url"], part.data, part.address["headers"])
    except PortalError as error:
        if error.status not in (400, 403):
            raise
        # An address that has expired on a slow line, or bytes that were damaged on their way: once more.
        [again] = transport.post(f"uploads/{upload_id}/parts/", {"parts": [part.asked]})["urls"]
        transport.put_part(again["url"], part.data, again["headers"])


def _wait_until_complete(transport: Transport, state: Upload) -> None:
    """Large uploads are put together after the answer. Raises what the portal found wrong with them."""
    pause = 0.03
    while state.state == "completing":
        time.sleep(pause)
        pause = min(pause * 1.5, 2.0)
        state = read(Upload, transport.get(f"uploads/{state.id}/", files=0))
    if state.state != "complete":
        problem = state.problem or {}
        if problem:
            raise PortalError.from_answer(int(problem["status"]), problem)
        error = FieldError("upload", "state", f"The upload is {state.state}.", "Upload again.")
        raise PortalError(409, "conflict", f"The upload is {state.state} and cannot be completed.", errors=[error])
