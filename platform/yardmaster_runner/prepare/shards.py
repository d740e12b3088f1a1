"""The shards of one worker: at most one open for each split, closed at a size or a number of records."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Sequence

from yardmaster_runner.prepare.trouble import PrepareError

OVERHEAD = 16
"""Bytes that TFRecord adds to each record."""


class Shards:
    """Writes records. Names hold a number that no other worker uses."""

    def __init__(self, top: str, compression: str, limit: int, records: int, worker: int, workers: int) -> None:
        try:
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
            import tensorflow
        except ImportError:
            raise PrepareError("writing TFRecord files needs TensorFlow: choose an image that has it") from None
        self.library: Any = tensorflow
        self.top, self.compression, self.limit, self.records = top, compression, limit, records
        self.number, self.workers = worker, workers
        self.open: Dict[str, List[Any]] = {}
        self.next: Dict[str, int] = {}
        self.done: Dict[str, List[Dict[str, Any]]] = {}

    def write(self, split: str, record: bytes) -> None:
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
        writer = self.library.io.TFRecordWriter(os.path.join(self.top, path), self.compression or None)
        return [writer, path, 0, 0]

    def _end(self, split: str) -> None:
        writer, path, records, _ = self.open.pop(split)
        writer.close()
        size = os.path.getsize(os.path.join(self.top, path))
        self.done.setdefault(split, []).append({"path": path, "records": records, "size": size})

    def close(self) -> Dict[str, List[Dict[str, Any]]]:
        """All shards by split, closed."""
        for split in list(self.open):
            self._end(split)
        return self.done
