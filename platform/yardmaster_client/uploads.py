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
from itertools import chain, pairwise
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from yardmaster_client.errors import FieldError, PortalError
from yardmaster_client.models import Upload, read
from yardmaster_client.transport import Transport

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all) after each part, from any thread."""

_SIGNED_AT_ONCE = 100
_SIGNED_BYTES = 64 << 20
_PARALLEL = 4
_IGNORED = {".git", "__pycache__", ".venv", "node_modules", ".ipynb_checkpoints", ".DS_Store"}


@dataclass(frozen=True)
class LocalFile:
    """A file here, and the path it gets there."""

    source: Path
    path: str
    size: int

    def as_json(self) -> dict[str, Any]:
        return {"path": self.path, "size": self.size}


def find_files(paths: Iterable[Path]) -> list[LocalFile]:
    """Files as they are, and the content of folders (without caches and version control), in a fixed order.

    Raises:
        FileNotFoundError: a path does not exist. ValueError: there is nothing to upload, or two files get one path.
    """
    found = sorted((file for path in paths for file in _below(Path(path))), key=lambda file: file.path)
    if not found:
        raise ValueError("Nothing to upload: the paths contain no files.")
    for one, other in pairwise(found):
        if one.path == other.path:
            raise ValueError(f"{one.source} and {other.source} would both become {one.path}: upload a folder of both.")
    return found


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
    another process, sends only the rest: the open upload is remembered in the user's cache folder.
    """
    memory = _Memory(transport.url, kind, namespace, files)
    state = memory.open_upload(transport)
    if state is None:
        body = {"kind": kind, "files": [one.as_json() for one in files]}
        state = read(Upload, transport.post("uploads/", body | ({"namespace": namespace} if namespace else {})))
        memory.keep(state.id)
    if state.state == "open":
        _send(transport, state, {one.path: one for one in files}, progress)
        state = read(Upload, transport.post(f"uploads/{state.id}/complete/", {"unpack": unpack}))
    _wait_until_complete(transport, state)
    memory.forget()
    return state.id


class _Memory:
    """Which upload of exactly these files is under way, in a small file named after all that makes it the same."""

    def __init__(self, url: str, kind: str, namespace: str | None, files: Sequence[LocalFile]) -> None:
        about = [[one.path, one.size, one.source.stat().st_mtime_ns] for one in files]
        what = json.dumps([url, kind, namespace, about], sort_keys=True)
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._file = base / "yardmaster" / "uploads" / hashlib.sha256(what.encode()).hexdigest()

    def open_upload(self, transport: Transport) -> Upload | None:
        """The upload to continue with; None when there is none, or the portal no longer has it."""
        try:
            upload_id = self._file.read_text().strip()
            state = read(Upload, transport.get(f"uploads/{upload_id}/"))
        except (OSError, PortalError):
            return None
        return state if state.state in ("open", "completing") else None

    def keep(self, upload_id: str) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(upload_id)
        except OSError:
            return  # without a cache folder a broken upload starts again, which is no reason to refuse it

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)


def _below(path: Path) -> Iterator[LocalFile]:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_file():
        yield LocalFile(path, path.name, path.stat().st_size)
        return
    for file in path.rglob("*"):
        relative = file.relative_to(path)
        if file.is_file() and not file.is_symlink() and not _IGNORED.intersection(relative.parts):
            yield LocalFile(file, relative.as_posix(), file.stat().st_size)


@dataclass(frozen=True)
class _Part:
    """Part `number` (from 1) of the file that is `index` in its upload: `size` bytes from `start`."""

    source: Path
    index: int
    number: int
    start: int
    size: int

    def read(self) -> bytes:
        """Its bytes. Raises ValueError: the file has become shorter."""
        with self.source.open("rb") as stream:
            stream.seek(self.start)
            data = stream.read(self.size)
        if len(data) < self.size:
            raise ValueError(f"{self.source} was changed while it was uploaded: upload it again.")
        return data


def _send(transport: Transport, state: Upload, sources: dict[str, LocalFile], progress: Progress) -> None:
    """Send the parts that the portal lacks, some side by side, while the next ones are read and signed."""
    total = sum(file["size"] for file in state.files)
    lacking = [part for file in state.files for part in _lacking(state, file, sources[file["path"]])]
    done = total - sum(part.size for part in lacking)
    progress(done, total)
    counting = Lock()

    def sent(size: int) -> None:
        nonlocal done
        with counting:
            done += size
            progress(done, total)

    def send(part: _SignedPart) -> None:
        _send_part(transport, state.id, part)
        sent(part.part.size)

    with ThreadPoolExecutor(_PARALLEL) as senders, ThreadPoolExecutor(1) as signers:
        batches = _in_order(signers, partial(_sign, transport, state.id), _batches(lacking), ahead=1)
        deque(_in_order(senders, send, chain.from_iterable(batches), ahead=2 * _PARALLEL), maxlen=0)


def _in_order(pool: ThreadPoolExecutor, work: Callable[[T], R], items: Iterable[T], *, ahead: int) -> Iterator[R]:
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


def _lacking(state: Upload, file: dict[str, Any], source: LocalFile) -> Iterator[_Part]:
    there = set(file["done"])
    for number in range(1, file["parts"] + 1):
        if number not in there:
            start = (number - 1) * state.part_size
            yield _Part(source.source, file["index"], number, start, min(state.part_size, file["size"] - start))


def _batches(parts: Iterable[_Part]) -> Iterator[list[_Part]]:
    """As many parts as are signed with one request: few large ones, since what is sent waits for the first of them."""
    batch: list[_Part] = []
    size = 0
    for part in parts:
        if batch and (len(batch) == _SIGNED_AT_ONCE or size + part.size > _SIGNED_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(part)
        size += part.size
    if batch:
        yield batch


@dataclass(frozen=True)
class _SignedPart:
    """A part, how it was asked for, and where to send it."""

    part: _Part
    asked: dict[str, Any]
    address: dict[str, Any]


def _sign(transport: Transport, upload_id: str, batch: Sequence[_Part]) -> list[_SignedPart]:
    asked = [
        {"file": part.index, "part": part.number, "sha256": hashlib.sha256(part.read()).hexdigest()} for part in batch
    ]
    addresses = transport.post(f"uploads/{upload_id}/parts/", {"parts": asked})["urls"]
    return [_SignedPart(*one) for one in zip(batch, asked, addresses, strict=True)]


def _send_part(transport: Transport, upload_id: str, part: _SignedPart) -> None:
    """Its bytes are read once more: the store refuses them where they are not those that were signed."""
    data = part.part.read()
    try:
        transport.put_part(part.address["url"], data, part.address["headers"])
    except PortalError as error:
        if error.status not in (400, 403):
            raise
        # An address that has expired on a slow line, or bytes that were damaged on their way: once more.
        [again] = transport.post(f"uploads/{upload_id}/parts/", {"parts": [part.asked]})["urls"]
        transport.put_part(again["url"], data, again["headers"])


def _wait_until_complete(transport: Transport, state: Upload) -> None:
    """Large uploads are put together after the answer. Raises what the portal found wrong with them."""
    pause = 0.1
    while state.state == "completing":
        time.sleep(pause)
        pause = min(pause * 1.5, 2.0)
        state = read(Upload, transport.get(f"uploads/{state.id}/"))
    if state.state != "complete":
        problem = state.problem or {}
        if problem:
            raise PortalError.from_answer(int(problem["status"]), problem)
        error = FieldError("upload", "state", f"The upload is {state.state}.", "Upload again.")
        raise PortalError(409, "conflict", f"The upload is {state.state} and cannot be completed.", errors=[error])
