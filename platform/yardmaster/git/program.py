"""The program that fetches one commit, in a process of its own with limits: a task from stdin, its result to stdout.
How far it is stands in a file that the worker looks at meanwhile.

A pack is hostile: it may be small and hold terabytes, so memory, processor time and the size of files are limited
before the first byte is asked for. The one module that imports dulwich.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import resource
import signal
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from yardmaster.git.address import GitAddress
from yardmaster.git.hosts import GitHost
from yardmaster.git.refs import Found, prefixes_of, ref_found, ref_missing
from yardmaster.git.refusals import Refused
from yardmaster.git.tree import Entries, Objects, TreeWriter, Written, incomplete, too_large, too_many
from yardmaster.sandbox.program import limit

PACK, ARCHIVE, PROGRESS = "fetched", "code.zip", "progress.json"
_OBJECTS_PER_FILE = 4
_TAGS_FOLLOWED = 5
_COMMIT, _TREE, _BLOB, _TAG = 1, 2, 3, 4
_REFUSES = re.compile(r"http resp 4(?!08|29)")


def main() -> None:
    task = json.load(sys.stdin)
    limit(task)
    signal.alarm(task["wall"])  # where the worker that would end it was killed
    resource.setrlimit(resource.RLIMIT_FSIZE, (task["most_bytes"] + (64 << 20),) * 2)
    try:
        result = _Fetch(task).run()
    except Refused as error:
        result = {"refused": error.reason.as_json(), "passes": error.passes}
    except MemoryError:
        result = {"refused": too_large(task["most_bytes"]).reason.as_json(), "passes": False}
    except OSError as error:  # of the disk: what the network says is in words already
        refused = too_large(task["most_bytes"]) if error.errno == errno.EFBIG else _no_place(error)
        result = {"refused": refused.reason.as_json(), "passes": refused.passes}
    json.dump(result, sys.stdout)


def _no_place(error: OSError) -> Refused:
    message = f"The portal could not keep what it fetched: {error.strerror}."
    return Refused("git_no_space", message, "Try again later, or tell an administrator.", passes=True)


class _Fetch:
    """One task."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        self._task = task
        self._address = GitAddress(**task["address"])
        self._folder = Path(task["folder"])
        self._beat = _Beat(self._folder / PROGRESS)
        self._most_bytes, self._most_files = int(task["most_bytes"]), int(task["most_files"])

    def run(self) -> dict[str, Any]:
        client = self._client()
        found = self._found(client)
        if found.commit in self._task["known"]:
            return {"commit": found.commit, "ref": found.ref, "is_known": True}
        with (self._folder / f"{PACK}.pack").open("wb") as file:
            self._fetch(client, found, file)
        return self._unpack(found)

    def _client(self) -> Any:
        from dulwich.client import Urllib3HttpGitClient

        from yardmaster.git.connections import GitPool

        host, trusted = GitHost(**self._task["host"]), self._task["trusted"]
        pool = GitPool(host, **trusted, headers={"User-Agent": "git/2.40 (yardmaster)"})
        user, _, password = str(self._task["token"]).rpartition(":")
        return Urllib3HttpGitClient(
            self._address.origin, pool_manager=pool, thin_packs=False, quiet=True,
            username=(user or "x-access-token") if password else None, password=password or None,
        )  # fmt: skip

    def _found(self, client: Any) -> Found:
        ref = self._address.ref
        with _InWords(self._address):
            refs = client.get_refs(self._path, ref_prefix=prefixes_of(ref)).refs
            if client.dumb:  # files of a web server, each asked for by itself
                raise _not_smart(self._address)
            found = ref_found(ref, refs)
            if found is None:
                refs = client.get_refs(self._path, ref_prefix=[b"refs/heads/", b"refs/tags/"]).refs
                raise ref_missing(ref, refs)
        return found

    @property
    def _path(self) -> str:
        return self._address.path

    def _fetch(self, client: Any, found: Found, file: io.BufferedWriter) -> None:
        size = 0

        def arrived(piece: bytes) -> int:
            nonlocal size
            size += len(piece)
            if size > self._most_bytes:
                raise too_large(self._most_bytes)
            self._beat("fetching", size)
            return file.write(piece)

        with _InWords(self._address):
            client.fetch_pack(
                self._path, lambda refs, depth=None: [found.wanted.encode()], _Nothing(), arrived, depth=1,
                ref_prefix=prefixes_of(self._address.ref),
            )  # fmt: skip
        if not size:  # hosts say why in many ways
            raise incomplete() if found.ref else _commit_missing(self._address)

    def _unpack(self, found: Found) -> dict[str, Any]:
        import struct
        import zlib

        from dulwich.errors import ApplyDeltaError, ChecksumMismatch, ObjectFormatException
        from dulwich.pack import UnresolvedDeltas

        broken = (ApplyDeltaError, ChecksumMismatch, ObjectFormatException, UnresolvedDeltas, zlib.error, struct.error)
        try:
            with _OpenedPack(self._folder / PACK, _OBJECTS_PER_FILE * self._most_files, self._most_files) as pack:
                commit, tree = _peeled(pack, found.wanted)
                writer = TreeWriter(
                    _objects_of(pack), tree, most_files=self._most_files, most_bytes=self._most_bytes
                )  # fmt: skip
                with zipfile.ZipFile(self._folder / ARCHIVE, "w") as archive:
                    written = writer.write(self._address.folder, archive, self._written)
        except (*broken, AssertionError, ValueError, IndexError) as error:
            raise incomplete() from error
        return {"commit": commit, "ref": found.ref, "is_known": False, **written.as_json()}

    def _written(self, written: Written) -> None:
        self._beat("unpacking", written.size)


class _Nothing:
    """What this process has of the repository already."""

    shallow: frozenset[bytes] = frozenset()

    def __next__(self) -> None:
        return None

    def ack(self, *_: object) -> None:
        pass

    def nak(self) -> None:
        pass


class _Beat:
    """Writes how far it is, now and then."""

    def __init__(self, file: Path) -> None:
        self._file, self._next = file, 0.0

    def __call__(self, step: str, size: int) -> None:
        if (now := time.monotonic()) < self._next:
            return
        self._next = now + 0.5
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps({"step": step, "bytes": size}))
        os.replace(part, self._file)


class _InWords:
    """What the library raises of the host, as a `Refused`."""

    def __init__(self, address: GitAddress) -> None:
        self._address = address

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and not isinstance(error, Refused | MemoryError):
            _raise_in_words(self._address, error)


def _raise_in_words(address: GitAddress, error: BaseException) -> NoReturn:
    from dulwich.client import HTTPUnauthorized
    from dulwich.errors import GitProtocolError, HangupException, NotGitRepository

    url, host = address.repository, address.host
    if isinstance(error, NotGitRepository | HTTPUnauthorized) or "http resp 403" in str(error):
        message = f"There is no repository at {url}, or it is private."
        remedy = "Check the address. For a private repository, store a token as a secret and name it (git_token)."
        raise Refused("git_not_found", message, remedy, url) from error
    if "not our ref" in str(error) or "unadvertised object" in str(error):
        raise _commit_missing(address) from error
    if isinstance(error, GitProtocolError | HangupException | OSError):
        said = str(error)[:200] or type(error).__name__
        message, passes = f"{host} did not answer as a Git host does: {said}", not _REFUSES.search(said)
        remedy = "Try again later, or check the address."
        raise Refused("git_unreachable", message, remedy, url, passes=passes) from error
    message = f"{host} sent what cannot be read ({type(error).__name__})."
    raise Refused("git_broken", message, "Check that the address is that of a Git repository.", url) from error


def _not_smart(address: GitAddress) -> Refused:
    message = f"What {address.host} has at {address.repository} is no repository that can be fetched."
    return Refused("git_not_found", message, "Use the address that `git clone https://…` takes.", address.repository)


def _commit_missing(address: GitAddress) -> Refused:
    message = f"{address.host} does not serve the commit {address.ref}."
    remedy = "Check the id. Some hosts serve only commits at the tip of a branch or tag: name one of those."
    return Refused("git_ref_not_found", message, remedy, address.ref, field="ref")


class _OpenedPack:
    """The pack that was fetched, with an index of its objects."""

    def __init__(self, place: Path, most_objects: int, most_files: int) -> None:
        self._place, self._most_objects, self._most_files = place, most_objects, most_files

    def __enter__(self) -> Any:
        from dulwich.object_format import DEFAULT_OBJECT_FORMAT
        from dulwich.pack import Pack, PackData

        with PackData(str(self._place) + ".pack", DEFAULT_OBJECT_FORMAT) as data:
            if len(data) > self._most_objects:
                raise too_many(self._most_files)
            data.check()
            data.create_index(str(self._place) + ".idx")
        self._opened = Pack(str(self._place), object_format=DEFAULT_OBJECT_FORMAT)
        return self._opened

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _peeled(pack: Any, oid: str) -> tuple[str, str]:
    """The commit that this is or leads to, and its tree."""
    for _ in range(_TAGS_FOLLOWED):
        found = _object(pack, oid)
        if found.type_num == _COMMIT:
            return oid, found.tree.decode()
        if found.type_num != _TAG:
            break
        oid = found.object[1].decode()
    message = "This ref leads to no commit."
    raise Refused("git_ref_not_found", message, "Name a branch, a tag or a commit.", oid, field="ref")


def _objects_of(pack: Any) -> Objects:
    def entries(oid: str) -> Entries:
        found = _object(pack, oid)
        if found.type_num != _TREE:
            raise incomplete()
        return [(one.path, one.mode, one.sha.decode()) for one in found.iteritems()]

    def content(oid: str) -> bytes:
        kind, raw = pack.get_raw(oid.encode())
        if kind != _BLOB:
            raise incomplete()
        return raw if isinstance(raw, bytes) else b"".join(raw)

    return Objects(entries, content)


def _object(pack: Any, oid: str) -> Any:
    try:
        return pack[oid.encode()]
    except KeyError as error:
        raise incomplete() from error


if __name__ == "__main__":
    main()
