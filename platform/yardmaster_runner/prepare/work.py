"""One worker's part: reads its files, writes its shards, and leaves `part-<worker>.json`."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple

from yardmaster_runner.data.description import FILE_NAME, to_text
from yardmaster_runner.prepare import folder, wire
from yardmaster_runner.prepare.histogram import Histogram
from yardmaster_runner.prepare.merging import merged
from yardmaster_runner.prepare.numbers import Numbers
from yardmaster_runner.prepare.schema import Columns
from yardmaster_runner.prepare.shards import Shards
from yardmaster_runner.prepare.sources import Source
from yardmaster_runner.prepare.step import Step, loaded
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError

BAD_LISTED = 100
PROGRESS_EVERY = 1000


@dataclass(frozen=True)
class Options:
    """What a preparation is asked for; the same for all of its workers, but for `worker`."""

    input: str
    output: str
    format: str = "auto"
    shard_bytes: int = 150_000_000
    records_per_shard: int = 0
    compression: str = ""
    split: str = "90/10"
    seed: int = 1
    label: str = ""
    worker: int = 0
    workers: int = 1
    step: str = ""
    on_bad_record: str = "fail"


class Work:
    """The state of one worker while it runs."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self.options, self.say = options, say
        self.parts = folder.shares(options.split)
        listed = folder.list_files(options.input)
        self.form, files = folder.of_format(listed, options.format)
        self.plan = plan_of(options, self.form, files)
        skip = options.on_bad_record == "skip"
        self.source = Source(options.input, self.form, files, options.label, skip)
        self.files = folder.assign(self.source.files, options.workers)[options.worker]
        self.given = any(folder.given_split(one.path) for one in self.source.files)
        self.by_rows = self.form not in ("images", "text") and len(self.source.files) < folder.FEW_FILES
        self.columns = Columns(None if options.step else self.source.features)
        self.step: Optional[Step] = loaded(options.step) if options.step else None
        self.numbers: Dict[str, Numbers] = {}
        self.histograms: Dict[str, Histogram] = {}
        self.counts: Dict[str, Dict[str, int]] = {}
        self.bad: List[str] = []
        self.bad_count = 0

    def run(self) -> None:
        """Write everything. Raises `BadRecord` at the first one unless they are skipped."""
        one = self.options
        self.say("format %s, %d of %d files" % (self.form, len(self.files), len(self.source.files)))
        how = "as the folders give it" if self.given else "by rows: few files" if self.by_rows else "by files"
        self.say("split %s" % how)
        shards = Shards(one.output, one.compression, one.shard_bytes, one.records_per_shard, one.worker, one.workers)
        for number, file in enumerate(self.files, 1):
            for place, record in self.source.records(file):
                try:
                    if isinstance(record, BadRecord):
                        raise record
                    self._take(shards, file, place, record)
                except BadRecord as error:
                    self._refuse(error)
            if number % PROGRESS_EVERY == 0 or number == len(self.files) or self.form not in ("images", "text"):
                self.say("step %d/%d" % (number, len(self.files)))
        self._leave(shards.close())

    def _refuse(self, error: BadRecord) -> None:
        if self.options.on_bad_record != "skip":
            raise error
        self.bad_count += 1
        if len(self.bad) < BAD_LISTED:
            self.bad.append(str(error)[:500])

    def _take(self, shards: Shards, file: folder.File, place: str, record: Dict[str, Any]) -> None:
        split = folder.given_split(file.path) if self.given else ""
        if not split:
            key = place if self.by_rows else file.path
            split = "train" if self.given else folder.split_of(key, self.options.seed, self.parts)
        for one in self.step(record, place) if self.step else [record]:
            try:
                if self.step:
                    self.columns.see(one, widening=False)
                values = self.columns.values(one)
            except (ValueError, TypeError) as error:
                raise BadRecord(place, str(error)) from None
            shards.write(split, wire.example(values))
            self._count(split, values)

    def _count(self, split: str, values: Dict[str, wire.Values]) -> None:
        counts = self.counts.setdefault(split, {})
        label = values.get(self.source.label) if self.source.label else None
        for name, (kind, found) in values.items():
            if kind != "bytes":
                numbers = self.numbers.setdefault(name, Numbers())
                for one in found:
                    numbers.add(one)  # type: ignore[arg-type]
                if len(found) == 1 and math.isfinite(found[0]):  # type: ignore[arg-type]
                    self.histograms.setdefault(name, Histogram()).add(found[0])  # type: ignore[arg-type]
        if label and len(label[1]) == 1 and label[0] == "int64":
            number = int(label[1][0])
            classes = self.source.classes
            name = classes[number] if 0 <= number < len(classes) else str(number)
            if name in counts or len(counts) < 100_000:
                counts[name] = counts.get(name, 0) + 1

    def _leave(self, splits: Dict[str, List[Dict[str, Any]]]) -> None:
        one = self.options
        part = {
            "plan": self.plan, "worker": one.worker, "workers": one.workers, "compression": one.compression,
            "features": {name: asdict(feature) for name, feature in self.columns.features.items()},
            "splits": splits, "counts": self.counts, "label": self.source.label, "classes": self.source.classes,
            "statistics": {name: numbers.to_members() for name, numbers in self.numbers.items()},
            "histograms": {name: one.to_members() for name, one in self.histograms.items()},
            "bad": self.bad, "bad_count": self.bad_count,
        }  # fmt: skip
        _write(part_path(one.output, one.worker), json.dumps(part))
        if self.bad_count:
            self.say("%d records were skipped; the first: %s" % (self.bad_count, self.bad[0]))


def plan_of(options: Options, form: str, files: List[folder.File]) -> str:
    """A digest of options and inputs: equal for the workers of one preparation."""
    members = {name: value for name, value in asdict(options).items() if name not in ("worker", "input", "output")}
    members["step"] = _digest_of(options.step)  # each task has it in a folder of its own
    content = json.dumps([members, form, [(one.path, one.size) for one in files]], sort_keys=True)
    return hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()


def _digest_of(step: str) -> str:
    if not step:
        return ""
    try:
        with open(step, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise PrepareError("the step cannot be read: %s" % error) from None


def part_path(output: str, worker: int) -> str:
    return os.path.join(output, "part-%d.json" % worker)


def _write(path: str, text: str) -> None:
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def merge(output: str, workers: int) -> Tuple[int, int]:
    """Write `dataset.json` from the results of all workers. Gives the numbers of records and of skipped ones."""
    parts = []
    for worker in range(workers):
        try:
            with open(part_path(output, worker), encoding="utf-8") as file:
                parts.append(json.load(file))
        except FileNotFoundError:
            raise PrepareError("worker %d has left no result in %s" % (worker, output)) from None
    description = merged(parts)
    total = sum(description.records(split) for split in description.splits)
    if not total:
        raise PrepareError("no record was written")
    _write(os.path.join(output, FILE_NAME), to_text(description))
    return total, sum(part["bad_count"] for part in parts)
