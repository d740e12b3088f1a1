"""One worker's part of a batch inference: its files through the model, its predictions, and `part-<worker>.json`."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from yardmaster_runner.data import example_bytes
from yardmaster_runner.data.description import JSON_LINES
from yardmaster_runner.predict import feeding
from yardmaster_runner.predict.batches import Batches, Filled
from yardmaster_runner.predict.lines_file import LinesFiles
from yardmaster_runner.predict.records import TFRECORD, Data, Record
from yardmaster_runner.predict.writing import Seen, json_of, names_of, row_of
from yardmaster_runner.prepare.files import assign
from yardmaster_runner.prepare.merging import PREDICTIONS as SPLIT
from yardmaster_runner.prepare.shards import Shards
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError
from yardmaster_runner.prepare.work import BAD_LISTED, part_path, write_whole
from yardmaster_runner.serving.loading import Loaded, NotLoaded, load
from yardmaster_runner.serving.signatures import BadRequest, Signature, chosen

GZIP = "tfrecord-gzip"
SHOWN_EVERY = 2.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class Options:
    """What is asked for; the same for all workers, but for `worker`. `model` is the folder of the model's files."""

    model: str
    input: str
    output: str
    signature: str = ""
    format: str = "auto"
    split: str = ""
    columns: str = ""
    keep: str = ""
    pixels: str = "0-255"
    batch: int = 64
    write: str = JSON_LINES
    shard_bytes: int = 150_000_000
    most_bad: int = 0
    worker: int = 0
    workers: int = 1

    @property
    def kept(self) -> List[str]:
        return list(dict.fromkeys(one.strip() for one in self.keep.split(",") if one.strip()))


class Work:
    """The state of one worker while it runs."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self.options, self.say = options, say
        self.mapping = feeding.mapping_of(options.columns)
        self.data = Data(options.input, options.format, options.split)
        self.files = assign(self.data.files, options.workers)[options.worker]
        self.bad: List[str] = []
        self.bad_count = 0
        self.seen = Seen((), widening=True)
        self.feeds: Optional[List[feeding.Feed]] = None
        self.shown = 0.0

    def run(self) -> None:
        """Write everything. Raises `BadRecord` for the first one above `most_bad`, and `PrepareError`."""
        one = self.options
        self.say("format %s, %d of %d files" % (self.data.form, len(self.files), len(self.data.files)))
        if not self.files:
            self._leave({})
            return
        self.loaded, self.signature = loaded_model(one.model, one.signature)
        exact = feeding.batch_of(self.signature)
        self.batches = Batches(self.loaded, self.signature.name, exact, self._refuse)
        self.names = names_of(self.signature.outputs, one.kept)
        self.seen = Seen(list(self.names.values()), widening=one.write == JSON_LINES)
        self.say("signature %s: %s" % (self.signature.name, self.signature.words()))
        self._begin_files()
        self._all(exact or one.batch)
        self._leave(self._close())

    def _begin_files(self) -> None:
        one = self.options
        if one.write == JSON_LINES:
            self.lines = LinesFiles(one.output, one.shard_bytes, one.worker, one.workers)
            return
        compression = "GZIP" if one.write == GZIP else ""
        self.shards = Shards(one.output, compression, one.shard_bytes, 0, one.worker, one.workers)

    def _close(self) -> Dict[str, List[Dict[str, Any]]]:
        return self.lines.close(SPLIT) if self.options.write == JSON_LINES else self.shards.close()

    def _all(self, size: int) -> None:
        """Every record, in batches of this size whatever file they are of; the last one may be smaller."""
        expected = {file.path: self.data.expected(file) for file in self.files}
        total, done = sum(expected.values()), 0
        batch: List[Filled] = []
        for file in self.files:
            for number, record in enumerate(self.data.read(file), 1):
                filled = self._filled(record)
                if filled is not None:
                    batch.append(filled)
                if len(batch) == size:
                    self._run(batch)
                    batch = []
                    here = expected[file.path]
                    self._show(done + (min(number, here) if here > 1 else 0), total)
            done += expected[file.path]
        if batch:
            self._run(batch)
        self.say("step %d/%d" % (total, total))

    def _show(self, done: int, total: int) -> None:
        if time.monotonic() >= self.shown + SHOWN_EVERY:
            self.shown = time.monotonic()
            self.say("step %d/%d" % (done, total))

    def _filled(self, record: Any) -> Optional[Filled]:
        """The record with the values of all inputs; None for a bad one."""
        try:
            if isinstance(record, BadRecord):
                raise record
            if self.feeds is None:
                aside = {*self.options.kept, self.data.label}
                self.feeds = feeding.feeds_of(self.signature, record, self.mapping, aside)
                for one in self.feeds:
                    self.say("input %s is %s" % (one.tensor.name, " + ".join(one.columns)))
            scale = 1 / 255 if self.options.pixels == "0-1" else 1.0
            return record, {one.tensor.name: feeding.values_for(one, record, scale) for one in self.feeds}
        except BadRecord as error:
            self._refuse(error)
            return None

    def _run(self, batch: Sequence[Filled]) -> None:
        for record, outputs in self.batches.run(batch):
            try:
                self._write(record, outputs)
            except BadRecord as error:
                self._refuse(error)

    def _write(self, record: Record, outputs: Dict[str, Any]) -> None:
        row = row_of(record, self.options.kept, outputs, self.names)
        values = self.seen.see(record.place, row)
        if self.options.write == JSON_LINES:
            self.lines.write(SPLIT, json.dumps(json_of(row), ensure_ascii=False, allow_nan=False).encode())
        else:
            self.shards.write(SPLIT, example_bytes.example(values))

    def _refuse(self, error: BadRecord) -> None:
        self.bad_count += 1
        if self.bad_count > self.options.most_bad:
            if not self.options.most_bad:
                raise error
            words = "there are more bad records than %d; the last one: %s" % (self.options.most_bad, error)
            raise PrepareError(words)
        if len(self.bad) < BAD_LISTED:
            self.bad.append(str(error)[:500])

    def _leave(self, splits: Dict[str, List[Dict[str, Any]]]) -> None:
        one, seen = self.options, self.seen
        part = {
            "plan": plan_of(one, self.data), "worker": one.worker, "workers": one.workers,
            "compression": "GZIP" if one.write == GZIP else "",
            "file_format": JSON_LINES if one.write == JSON_LINES else TFRECORD, "most_bad": one.most_bad,
            "features": {name: asdict(feature) for name, feature in seen.features.items()},
            "splits": splits, "counts": {}, "label": "", "classes": [],
            "statistics": {name: numbers.to_members() for name, numbers in seen.numbers.items()},
            "histograms": {name: found.to_members() for name, found in seen.histograms.items()},
            "bad": self.bad, "bad_count": self.bad_count,
        }  # fmt: skip
        write_whole(part_path(one.output, one.worker), json.dumps(part))
        if self.bad_count:
            self.say("%d records were skipped; the first: %s" % (self.bad_count, self.bad[0]))


def loaded_model(top: str, signature: str) -> Tuple[Loaded, Signature]:
    """The model and the signature that is asked for. Raises `PrepareError`."""
    try:
        loaded = load(top)
        return loaded, chosen(loaded.signatures, signature)
    except NotLoaded as error:
        raise PrepareError("the model cannot be used: %s" % str(error).rstrip(".")) from None
    except BadRequest as error:
        raise PrepareError(error.message) from None


def plan_of(options: Options, data: Data) -> str:
    """A digest of options and inputs: equal for the workers of one job."""
    members = {
        name: value for name, value in asdict(options).items() if name not in ("worker", "input", "output", "model")
    }
    content = json.dumps([members, data.form, [(one.path, one.size) for one in data.files]], sort_keys=True)
    return hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()
