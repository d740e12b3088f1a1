"""JSON lines in files of a bounded size, in the place of `prepare.shards.Shards`."""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Dict, List, Optional

from yardmaster_runner.data.description import JSON_LINES


class LinesFiles:
    """Writes lines. Names hold a number that no other worker uses."""

    def __init__(self, top: str, limit: int, worker: int, workers: int) -> None:
        self.top, self.limit, self.next, self.workers = top, limit, worker, workers
        self.done: Dict[str, List[Dict[str, Any]]] = {}
        self._file: Optional[BinaryIO] = None
        self._path, self._records, self._size = "", 0, 0

    def write(self, split: str, line: bytes) -> None:
        """One line without its end."""
        if self._file is None:
            self._path = "%s/%s-%05d.%s" % (split, split, self.next, JSON_LINES)
            self.next += self.workers
            where = os.path.join(self.top, *self._path.split("/"))
            os.makedirs(os.path.dirname(where), exist_ok=True)
            self._file, self._records, self._size = open(where, "wb"), 0, 0  # noqa: SIM115
        self._file.write(line + b"\n")
        self._records += 1
        self._size += len(line) + 1
        if self._size >= self.limit:
            self._end(split)

    def close(self, split: str) -> Dict[str, List[Dict[str, Any]]]:
        """All files by split, closed."""
        if self._file is not None:
            self._end(split)
        return self.done

    def _end(self, split: str) -> None:
        assert self._file is not None
        self._file.close()
        self._file = None
        found = {"path": self._path, "records": self._records, "size": self._size}
        self.done.setdefault(split, []).append(found)
