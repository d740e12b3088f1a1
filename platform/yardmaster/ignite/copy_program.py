"""The program that copies a cache or the rows of a query into TFRecord shards, in a process of its own with limits: a
task from stdin, files into the folder of the task, its result to stdout.

    folder/data/train/train-00000.tfrecord …   the records
    folder/data/dataset.json                   what they hold
    folder/progress                            rows and bytes so far

Who runs the cluster may be hostile (`guarded`). A connection that is lost lets the copy begin again: rows come in no
order by which it could continue.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from yardmaster.errors import Problem
from yardmaster.ignite.guarded import Guarded, answered
from yardmaster.ignite.refusals import NotLooked
from yardmaster.ignite.shard_files import ShardFiles
from yardmaster.sandbox.program import limit
from yardmaster_runner.data.description import FILE_NAME, Description, to_text
from yardmaster_runner.data.example_bytes import example
from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.binary_types import BinaryTypes
from yardmaster_runner.data.ignite_reader.copying import Page, cache_pages, query_pages
from yardmaster_runner.data.ignite_reader.errors import ConnectionLost, IgniteCacheError, IgniteUnavailable
from yardmaster_runner.data.ignite_reader.example_rows import Features, examples, refuse_twice
from yardmaster_runner.data.ignite_reader.query import Query

LARGEST_ANSWER = 64 << 20
LARGEST_FILE = 192 << 20
TRIES = 3
PATIENCE = 10.0
SPLIT = "train"
PROGRESS, DATA = "progress", "data"
TOO_LARGE = "dataset_too_large"
_FIELDS = {
    "ignite_cache": ("cache", "Copy the name of a cache that has rows from the page of the connection."),
    "ignite_query": ("query", "Correct the query. It must be a single SELECT, and name tables as SCHEMA.TABLE."),
    "ignite_type": ("query", "Copy the fields that fit, with a query that selects them."),
}


def main() -> None:
    task = json.load(sys.stdin)
    limit(task)
    signal.alarm(task["wall"])  # where the worker that would end it was killed
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    said = answered(task, lambda: _copied(task))
    if "refused" in said:
        said["refused"] = asdict(_of_copy(Problem(**said["refused"])))
    json.dump(said, sys.stdout)


def _copied(task: Mapping[str, Any]) -> dict[str, Any]:
    guarded = Guarded(task, largest=LARGEST_ANSWER, patience=PATIENCE)
    for left in reversed(range(TRIES)):
        try:
            return _Copy(task, guarded).made()
        except ConnectionLost as error:
            if not left:
                raise IgniteUnavailable(f"{error}. Repeated attempts failed.") from error
    raise AssertionError("not reached")


class _Copy:
    """One try."""

    def __init__(self, task: Mapping[str, Any], guarded: Guarded) -> None:
        self._task, self._guarded = task, guarded
        self._top = Path(task["folder"]) / DATA
        shutil.rmtree(self._top, ignore_errors=True)
        self._top.mkdir()
        self._features = Features()
        self._shards = ShardFiles(self._top, SPLIT, task["shard_bytes"])
        self._types = BinaryTypes(self._ask)

    def made(self) -> dict[str, Any]:
        with self._shards as shards:
            for page, at, names, rows in self._pages():
                refuse_twice(names)
                for found in examples(page, at, names, rows, self._types, self._features):
                    shards.write(example(found))
                    self._refuse_large()
                self._tell()
        if not self._features.rows:
            what = "The query finds" if self._task["query"] else f"The cache {self._task['cache']!r} has"
            raise IgniteCacheError(f"{what} no rows: there is nothing to copy.")
        described = Description(self._features.described(), {SPLIT: tuple(shards.done)})
        (self._top / FILE_NAME).write_text(to_text(described))
        self._tell()
        return {"rows": self._features.rows, "shards": [one.path for one in shards.done]}

    def _pages(self) -> Iterator[Page]:
        task, guarded = self._task, self._guarded
        if task["query"]:
            return query_pages(guarded.cluster, Query(task["query"]), guarded.note)
        return cache_pages(guarded.cluster, task["cache"], guarded.note)

    def _ask(self, operation: int, body: bytes = b"") -> wire.Reader:
        answer = self._guarded.cluster.ask(operation, body)
        self._guarded.note(len(answer.data))
        return answer

    def _refuse_large(self) -> None:
        if self._shards.written > self._task["most_written"]:
            message = f"The rows need more than the {self._task['most_written']:,} bytes that are available."
            raise NotLooked(Problem("dataset", TOO_LARGE, message, "Copy fewer rows or fields, with a query."))

    def _tell(self) -> None:
        """As one write of always so many bytes: who reads it meanwhile finds it whole."""
        with open(os.open(Path(self._task["folder"]) / PROGRESS, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(b"%20d %20d" % (self._features.rows, self._shards.written))


def _of_copy(found: Problem) -> Problem:
    """In the fields of a copy."""
    field, remedy = _FIELDS.get(found.code, (found.field, found.remedy))
    return replace(found, field=field, remedy=remedy)


if __name__ == "__main__":
    main()
