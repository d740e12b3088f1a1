"""The shards of one worker: at most one open for each split, closed at a size or a number of records.

TensorFlow's writer is used, whose checksums are fast. Its import takes longer than a small dataset, so the first
records wait, and where no more come than that, they are written without it.
"""

from __future__ import annotations

import gzip
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from yardmaster_runner.data.examples import framed
from yardmaster_runner.prepare.trouble import PrepareError

OVERHEAD = 16
"""Bytes that TFRecord adds to each record."""
FEW_BYTES = 4 << 20
"""Of records that wait, each with what Python adds: their checksums take half a second."""
ADDED = 128


class Shards:
    """Writes records. Names hold a number that no other worker uses."""

    def __init__(self, top: str, compression: str, limit: int, records: int, worker: int, workers: int) -> None:
        self.top, self.compression, self.limit, self.records = top, compression, limit, records
        self.number, self.workers = worker, workers
        self.open: Dict[str, List[Any]] = {}
        self.next: Dict[str, int] = {}
        self.done: Dict[str, List[Dict[str, Any]]] = {}
        self.writer: Optional[Callable[[str, str], Any]] = None
        self.waiting: List[Tuple[str, bytes]] = []
        self.waiting_bytes = 0

    def write(self, split: str, record: bytes) -> None:
        if self.writer is not None:
            self._write(split, record)
        else:
            self._wait(split, [record])

    def _wait(self, split: str, records: Sequence[bytes]) -> None:
        self.waiting += [(split, record) for record in records]
        self.waiting_bytes += sum(map(len, records)) + ADDED * len(records)
        if self.waiting_bytes > FEW_BYTES:
            self._write_waiting(_tensorflows_writer())

    def _write_waiting(self, writer: Callable[[str, str], Any]) -> None:
        self.writer = writer
        waiting, self.waiting = self.waiting, []
        for split, record in waiting:
            self._write(split, record)

    def _write(self, split: str, record: bytes) -> None:
        current = self.open.get(split)
        if current is None:
            current = self.open[split] = self._begin(split)
        current[0].write(record)
        current[2] += 1
        current[3] += len(record) + OVERHEAD
        if current[2] >= self.records if self.records else current[3] >= self.limit:
            self._end(split)

    def write_all(self, split: str, records: Sequence[bytes]) -> None:
        """As `write` of each."""
        if self.writer is None:
            self._wait(split, records)
            return
        done = 0
        while done < len(records):
            current = self.open.get(split)
            if current is None:
                current = self.open[split] = self._begin(split)
            write, left = current[0].write, self.limit - current[3]
            some = records[done : done + self.records - current[2]] if self.records else records[done:]
            written = 0
            for record in some:
                write(record)
                written += 1
                left -= len(record) + OVERHEAD
                if left <= 0 and not self.records:
                    break
            done += written
            current[2] += written
            current[3] = self.limit - left
            if current[2] >= self.records if self.records else left <= 0:
                self._end(split)

    def _begin(self, split: str) -> List[Any]:
        number = self.next.get(split, self.number)
        self.next[split] = number + self.workers
        path = "%s/%s-%05d.tfrecord%s" % (split, split, number, ".gz" if self.compression else "")
        os.makedirs(os.path.join(self.top, split), exist_ok=True)
        assert self.writer is not None
        return [self.writer(os.path.join(self.top, path), self.compression), path, 0, 0]

    def _end(self, split: str) -> None:
        writer, path, records, _ = self.open.pop(split)
        writer.close()
        size = os.path.getsize(os.path.join(self.top, path))
        self.done.setdefault(split, []).append({"path": path, "records": records, "size": size})

    def close(self) -> Dict[str, List[Dict[str, Any]]]:
        """All shards by split, closed."""
        if self.writer is None:
            self._write_waiting(OwnWriter)
        for split in list(self.open):
            self._end(split)
        return self.done


class OwnWriter:
    """What TensorFlow's `TFRecordWriter` writes, ten times slower."""

    def __init__(self, path: str, compression: str) -> None:
        file = open(path, "wb")  # noqa: SIM115 - `close` closes it
        self._file: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compression else file
        self._files = (self._file, file)

    def write(self, record: bytes) -> None:
        self._file.write(framed(record))

    def close(self) -> None:
        for one in self._files:
            one.close()


def _tensorflows_writer() -> Callable[[str, str], Any]:
    try:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import tensorflow
    except ImportError:
        raise PrepareError("writing TFRecord files needs TensorFlow: choose an image that has it") from None
    return lambda path, compression: tensorflow.io.TFRecordWriter(path, compression or None)
