"""Putting files into the portal: parts side by side, with progress, going on where an earlier try stopped.

Not here: what the upload becomes (`stores`).
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from yardmaster_client.errors import FieldError, PortalError
from yardmaster_client.models import Upload, read
from yardmaster_client.transport import Transport

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all) after each part, from any thread."""

_SIGNED_AT_ONCE = 100
_PARALLEL = 4
_IGNORED = {".git", "__pycache__", ".venv", "node_modules", ".ipynb_checkpoints", ".DS_Store"}


@dataclass(frozen=True)
class LocalFile:
    """A file here, and the path it gets there."""

    source: Path
    path: str
    size: int

    def sha256(self) -> str:
        with self.source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Announced:
    """A file with its checksum, as the portal is told of it."""

    file: LocalFile
    sha256: str

    def as_json(self) -> dict[str, Any]:
        return {"path": self.file.path, "size": self.file.size, "sha256": self.sha256}


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


def announced(files: Sequence[LocalFile]) -> list[Announced]:
    """The files with their checksums; several are read at once."""
    with ThreadPoolExecutor(_PARALLEL) as pool:
        return [Announced(file, sha256) for file, sha256 in zip(files, pool.map(LocalFile.sha256, files), strict=True)]


def upload(
    transport: Transport,
    kind: str,
    files: Sequence[Announced],
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
        _send(transport, state, {one.file.path: one.file for one in files}, progress)
        state = read(Upload, transport.post(f"uploads/{state.id}/complete/", {"unpack": unpack}))
    _wait_until_complete(transport, state)
    memory.forget()
    return state.id


class _Memory:
    """Which upload of exactly these files is under way, in a small file named after all that makes it the same."""

    def __init__(self, url: str, kind: str, namespace: str | None, files: Sequence[Announced]) -> None:
        what = json.dumps([url, kind, namespace, [one.as_json() for one in files]], sort_keys=True)
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


def _send(transport: Transport, state: Upload, sources: dict[str, LocalFile], progress: Progress) -> None:
    """Send the parts that the portal lacks, files one after the other, their parts side by side."""
    total = sum(file["size"] for file in state.files)
    done = sum(_sizes(state, file, file["done"]) for file in state.files)
    progress(done, total)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for file in state.files:
            sent = set(file["done"])
            lacking = [part for part in range(1, file["parts"] + 1) if part not in sent]
            for batch in (lacking[i : i + _SIGNED_AT_ONCE] for i in range(0, len(lacking), _SIGNED_AT_ONCE)):
                signed = transport.post(f"uploads/{state.id}/parts/", {"file": file["index"], "parts": batch})["urls"]
                for size in pool.map(lambda one, f=file: _put(transport, state, f, sources[f["path"]], one), signed):
                    done += size
                    progress(done, total)


def _sizes(state: Upload, file: dict[str, Any], parts: Iterable[int]) -> int:
    return sum(max(0, min(state.part_size, file["size"] - (part - 1) * state.part_size)) for part in parts)


def _put(transport: Transport, state: Upload, file: dict[str, Any], source: LocalFile, signed: dict[str, Any]) -> int:
    with source.source.open("rb") as stream:
        stream.seek((signed["part"] - 1) * state.part_size)
        data = stream.read(state.part_size)
    try:
        transport.put_part(signed["url"], data, signed.get("headers", {}))
    except PortalError as error:
        if error.status != 403:
            raise
        # An address that has expired: on a slow line those that were signed together with it took longer.
        wanted = {"file": file["index"], "parts": [signed["part"]]}
        [again] = transport.post(f"uploads/{state.id}/parts/", wanted)["urls"]
        transport.put_part(again["url"], data, again.get("headers", {}))
    return len(data)


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
