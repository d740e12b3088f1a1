"""`python -m tests.real.ignite_store_speed`: how fast a checkpoint of 200 MB is written to the store in Apache Ignite
and read back, beside the store that is a folder, in megabytes a second. On a machine that is quiet.

Each is the median of five, in parts of 8 MiB one after the other, as the portal's web process handles the requests of a
task, checksums included: HTTP is in none of the figures. One node of Ignite on this machine, which keeps the data in
memory.
"""

from __future__ import annotations

import hashlib
import io
import os
import statistics
import tempfile
import time
from pathlib import Path

from tests.real.ignite import Ignite, ignite
from yardmaster.storage.base import CHUNK
from yardmaster.storage.ignite import IgniteStorage
from yardmaster.storage.local import LocalStorage
from yardmaster.storage.signing import PartGrant
from yardmaster_runner.checksums import PART_SIZE

SIZE, ROUNDS = 200_000_000, 5
_SIGNS = {"base_url": "http://portal", "signing_key": "k" * 32}


def write(store: LocalStorage | IgniteStorage, key: str, data: bytes) -> None:
    upload_id = store.multipart_begin(key, PART_SIZE)
    for number, begin in enumerate(range(0, len(data), PART_SIZE), 1):
        part = data[begin : begin + PART_SIZE]
        grant = PartGrant(key, upload_id, number, len(part), hashlib.sha256(part).hexdigest())
        store.part_write(grant, io.BytesIO(part))
    store.multipart_complete(key, upload_id, store.parts(key, upload_id))


def read(store: LocalStorage | IgniteStorage, key: str) -> int:
    size = 0
    with store.open_range(key) as stream:
        while piece := stream.read(CHUNK):
            size += len(piece)
    return size


def measure(store: LocalStorage | IgniteStorage, data: bytes) -> tuple[float, float]:
    """Megabytes a second of writing and reading."""
    writing, reading = [], []
    for turn in range(ROUNDS):
        begun = time.monotonic()
        write(store, f"k{turn}", data)
        written = time.monotonic()
        if read(store, f"k{turn}") != SIZE:
            raise RuntimeError("other bytes came back")
        reading.append(time.monotonic() - written)
        writing.append(written - begun)
        store.delete(f"k{turn}")
    return SIZE / 1e6 / statistics.median(writing), SIZE / 1e6 / statistics.median(reading)


def main(folder: Path, server: Ignite) -> None:
    data = os.urandom(SIZE)
    options = server.store_options("SPEED")
    for name, store in (
        ("folder", LocalStorage(folder / "objects", **_SIGNS)),
        ("Apache Ignite", IgniteStorage(**_SIGNS, **options)),
    ):
        write_speed, read_speed = measure(store, data)
        print(f"{name}: writing {write_speed:.0f} MB/s, reading {read_speed:.0f} MB/s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, ignite(Path(place) / "ignite") as made:
        main(Path(place), made)
