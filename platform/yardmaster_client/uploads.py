"""Putting files into the portal: parts side by side, with progress, going on where an earlier try stopped.

Not here: what the upload becomes (`portal.Datasets`, `portal.CodeStore`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yardmaster_client.models import Upload, read
from yardmaster_client.transport import Transport

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all) after each part, from any thread."""

_SIGNED_AT_ONCE = 100
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


def find_files(paths: Iterable[Path]) -> list[LocalFile]:
    """Files as they are, and the content of folders (without caches and version control), in a fixed order.

    Raises:
        FileNotFoundError: a path does not exist. ValueError: there is nothing to upload.
    """
    found = [file for path in paths for file in _below(Path(path))]
    if not found:
        raise ValueError("There is nothing to upload: the paths hold no file.")
    return sorted(found, key=lambda file: file.path)


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


def upload(
    transport: Transport,
    kind: str,
    files: Sequence[LocalFile],
    *,
    namespace: str | None = None,
    resume: str | None = None,
    unpack: bool = False,
    progress: Progress = lambda done, total: None,
    lanes: int = 4,
) -> str:
    """Upload `files` and complete; returns the upload's id, good for one version.

    `resume`: the id of an open upload of the same files; only the parts that it lacks are sent. The reservation and
    what was sent stay for a later `resume` when this raises.
    """
    if resume:
        state = read(Upload, transport.get(f"uploads/{resume}/"))
    else:
        body = {"kind": kind, "files": [{"path": f.path, "size": f.size, "sha256": f.sha256()} for f in files]}
        state = read(Upload, transport.post("uploads/", body | ({"namespace": namespace} if namespace else {})))
    if state.state == "open":
        _send(transport, state, {file.path: file for file in files}, progress, lanes)
        transport.post(f"uploads/{state.id}/complete/", {"unpack": unpack})
    return state.id


def _send(transport: Transport, state: Upload, sources: dict[str, LocalFile], progress: Progress, lanes: int) -> None:
    total = sum(file["size"] for file in state.files)
    done = sum(_sizes(state, file, file["done"]) for file in state.files)
    progress(done, total)
    with ThreadPoolExecutor(lanes) as pool:
        for file in state.files:
            lacking = [part for part in range(1, file["parts"] + 1) if part not in set(file["done"])]
            for batch in (lacking[i : i + _SIGNED_AT_ONCE] for i in range(0, len(lacking), _SIGNED_AT_ONCE)):
                signed = transport.post(f"uploads/{state.id}/parts/", {"file": file["index"], "parts": batch})["urls"]
                for size in pool.map(lambda one, f=file: _put(transport, state, f, sources[f["path"]], one), signed):
                    done += size
                    progress(done, total)


def _part_size(state: Upload, file: dict[str, Any]) -> int:
    return int(file.get("part_size") or state.part_size)


def _sizes(state: Upload, file: dict[str, Any], parts: Iterable[int]) -> int:
    step = _part_size(state, file)
    return sum(max(0, min(step, file["size"] - (part - 1) * step)) for part in parts)


def _put(transport: Transport, state: Upload, file: dict[str, Any], source: LocalFile, signed: dict[str, Any]) -> int:
    step = _part_size(state, file)
    with source.source.open("rb") as stream:
        stream.seek((signed["part"] - 1) * step)
        data = stream.read(step)
    transport.put_part(signed["url"], data, signed.get("headers", {}))
    return len(data)
