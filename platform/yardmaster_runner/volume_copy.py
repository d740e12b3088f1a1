"""`python -m yardmaster_runner.volume_copy`: publish a version of a dataset to the data volume, as a task of a job.

The runner has fetched the files into its cache, which for this program lies on the volume. Here they are put in their
place, read back from there and compared with their checksums; the marker comes last. Cut off anywhere, the next start
does the rest.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterator, List, Tuple

from yardmaster_runner.cache import Checked, checked_files, inside
from yardmaster_runner.checkpoints import link_or_copy
from yardmaster_runner.checksums import Checksum
from yardmaster_runner.own_programs import Orders, orders
from yardmaster_runner.reasons import BAD_DATA
from yardmaster_runner.volume import OnVolume

CHUNK = 1 << 20
THREADS = 4
AT_ONCE = 1000
"""Files that are waited for together."""
EVERY = 2.0
"""Seconds between two lines of progress."""


class NotCopied(Exception):
    """Why the version is not on the volume, for people."""


def publish(given: Orders) -> Tuple[int, int]:
    """The version is complete on the volume afterwards. Returns how many files and bytes it has. Raises `NotCopied` and
    `OSError`."""
    (version,) = given.inputs.values()
    there = OnVolume(given.data_volume, version)
    meant = (int(given.options["files"]), int(given.options["bytes"]))
    if there.complete() is None:
        os.makedirs(there.files, exist_ok=True)
        shutil.rmtree(there.placing, ignore_errors=True)
        os.makedirs(there.placing, exist_ok=True)
        counted = _place_all(given.cache_dir, version, there, meant[0])
        if counted != meant:
            raise NotCopied("%d files of %d bytes came, and the version has %d of %d" % (counted + meant))
        shutil.rmtree(there.placing, ignore_errors=True)
        there.mark({"version": version, "files": counted[0], "bytes": counted[1]})
    shutil.rmtree(given.cache_dir, ignore_errors=True)
    return meant


def _place_all(cache_dir: str, version: str, there: OnVolume, total: int) -> Tuple[int, int]:
    count = size = 0
    said_at = time.monotonic()
    with ThreadPoolExecutor(THREADS) as pool:
        for some in _batches(checked_files(cache_dir, version)):
            for one in pool.map(lambda file: _place(file, there), some):
                count, size = count + 1, size + one
                if time.monotonic() - said_at >= EVERY:
                    said_at = time.monotonic()
                    say("step %d/%d: files on the volume" % (count, total))
    return count, size


def _place(file: Checked, there: OnVolume) -> int:
    """Put it in its place, and read it back. Returns its size."""
    target = inside(there.files, file.path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        if not (os.path.exists(target) and os.path.samefile(file.place, target)):
            _link(file.place, target, there.placing)
    except FileNotFoundError as error:
        raise NotCopied("%s is missing where it was fetched to" % file.path) from error
    found = Checksum(file.size, file.sha256)
    size = 0
    with open(target, "rb") as stream:
        _forget(stream.fileno())
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            found.update(chunk)
            size += len(chunk)
    if size != file.size or (file.sha256 and found.text() != file.sha256):
        raise NotCopied("%s is not on the volume as it was fetched: its checksum differs when it is read" % file.path)
    return size


def _forget(file: int) -> None:
    """What this machine remembers of it goes, so that what is read comes from the volume."""
    os.fsync(file)
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def _link(source: str, target: str, placing: str) -> None:
    """A second name for it; where the volume has none, a file of its own. It gets there under a name in a folder of
    ours: any name beside it may be that of another file of the version."""
    temporary = os.path.join(placing, hashlib.sha256(target.encode("utf-8", "surrogateescape")).hexdigest())
    if os.path.lexists(temporary):
        os.unlink(temporary)
    link_or_copy(source, temporary)
    os.replace(temporary, target)


def _batches(files: Iterator[Checked]) -> Iterator[List[Checked]]:
    some: List[Checked] = []
    for one in files:
        some.append(one)
        if len(some) == AT_ONCE:
            yield some
            some = []
    yield some


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(given: Any = None) -> int:
    """The exit code."""
    try:
        count, size = publish(given or orders())
    except (NotCopied, OSError) as error:
        sys.stderr.write("not published: %s\n" % error)
        return BAD_DATA if isinstance(error, NotCopied) else 1
    say("published: %d files, %d bytes" % (count, size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
