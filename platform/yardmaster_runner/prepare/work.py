"""One worker's part: reads its files, writes its shards, and leaves `part-<worker>.json`."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from yardmaster_runner.data import example_bytes
from yardmaster_runner.data.description import FILE_NAME, to_text
from yardmaster_runner.prepare import folder, wire
from yardmaster_runner.prepare.counting import Counted
from yardmaster_runner.prepare.files import File
from yardmaster_runner.prepare.layout import choose, notes_on
from yardmaster_runner.prepare.merging import empty_splits, merged
from yardmaster_runner.prepare.pieces import Piece
from yardmaster_runner.prepare.progress import Progress
from yardmaster_runner.prepare.schema import Columns
from yardmaster_runner.prepare.shards import Shards
from yardmaster_runner.prepare.sources import Source
from yardmaster_runner.prepare.splits import Splits
from yardmaster_runner.prepare.step import Step, loaded
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError

BAD_LISTED = 100
GROUP, GROUP_BYTES = 64, 4 << 20
"""Files, and bytes of them, that are read before they are written."""
LOCAL = ("worker", "input", "output", "listing")
"""Options in which the workers of one preparation may differ."""


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
    listing: str = ""
    """A file with all files of the input, where not all of them are there (`folder.read_list`)."""


class Work:
    """The state of one worker while it runs."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self.options, self.say = options, say
        self.parts = folder.shares(options.split)
        listed = folder.read_list(options.listing) if options.listing else folder.list_files(options.input)
        skip = options.on_bad_record == "skip"
        self.chosen = choose(listed, options.format, skip)
        self.form, files = self.chosen.form, self.chosen.files
        self.plan = plan_of(options, self.form, files)
        mine = folder.share_of(files, self.form, options.workers, options.worker)
        self.source = Source(options.input, self.chosen, mine, options.label, skip)
        self.pieces = self._pieces(files)
        self.files = len(files) - len(folder.partners(files))
        by_rows = self.form not in ("images", "text") and self.files < folder.FEW_FILES
        self.splits = Splits(self.chosen, self.source.numbered, by_rows, options.seed, self.parts)
        self.columns = Columns(None if options.step else self.source.features)
        self.step: Optional[Step] = loaded(options.step) if options.step else None
        self.counted = Counted(self.source.label, self.source.classes)
        self.bad: List[str] = []
        self.bad_count = 0

    def _pieces(self, files: Sequence[File]) -> Sequence[Piece]:
        one = self.options
        if folder.are_cut(self.form, files):
            return self.source.pieces(one.workers, one.worker)
        return self.source.wholes()

    def run(self) -> None:
        """Write everything. Raises `BadRecord` at the first one unless they are skipped."""
        one = self.options
        self.say("format %s, %d of %d files" % (self.form, len(self.pieces), self.files))
        for note in [*notes_on(self.chosen, self.source.classes), *self.source.notes]:
            self.say(note)
        for words in self.splits.words():
            self.say(words)
        shards = Shards(one.output, one.compression, one.shard_bytes, one.records_per_shard, one.worker, one.workers)
        progress = Progress(self.say, self._count(), len(self.pieces))
        flat = self.source.is_flat and self.step is None
        if flat:
            wire.require_numpy()
        encoder = wire.Encoder({name: feature.kind for name, feature in self.source.features.items()})
        for group in self._groups(flat):
            for done in self._write_flat(shards, encoder, group) if flat else self._write(shards, group[0]):
                progress.show(done)
            for piece in group:
                progress.end(piece.records)
        self._leave(shards.close())

    def _count(self) -> int:
        """The records of the pieces, bad ones with them."""
        return len(self.pieces) if self.source.is_of_files else sum(piece.records for piece in self.pieces)

    def _groups(self, flat: bool) -> Iterator[List[Piece]]:
        """The pieces, small files some at a time."""
        group: List[Piece] = []
        size = 0
        for piece in self.pieces:
            group.append(piece)
            size += piece.file.size
            if len(group) == GROUP or size >= GROUP_BYTES or not flat or not self.source.is_of_files:
                yield group
                group, size = [], 0
        if group:
            yield group

    def _write(self, shards: Shards, piece: Piece) -> Iterator[int]:
        """One record after the other; gives how many are done."""
        for done, (place, record) in enumerate(self.source.records(piece), 1):
            try:
                if isinstance(record, BadRecord):
                    raise record
                self._take(shards, piece.file, place, record)
            except BadRecord as error:
                self._refuse(error)
            yield done

    def _write_flat(self, shards: Shards, encoder: wire.Encoder, group: List[Piece]) -> Iterator[int]:
        """Many at a time."""
        label = self.source.label
        for found in self.source.flat_files(group) if self.source.is_of_files else self.source.flat(group[0]):
            if isinstance(found, BadRecord):
                self._refuse(found)
                continue
            records = encoder.examples(found.columns)
            self.counted.add_columns(self.source.features, found.columns)
            labels = found.columns[label] if label and self.source.features[label].kind == "int64" else None
            for split, chosen in self._divided(group, found.numbers).items():
                shards.write_all(split, records if chosen is None else [records[at] for at in chosen])
                if labels is not None:
                    self.counted.add_labels(split, labels if chosen is None else [labels[at] for at in chosen])
            yield found.numbers[-1] + 1 - group[0].first

    def _divided(self, group: List[Piece], numbers: Sequence[int]) -> Mapping[str, Optional[List[int]]]:
        """Which of these rows of a file, or of these files, belong to which split; None: all of them."""
        if self.source.is_of_files:
            found: Dict[str, Optional[List[int]]] = {}
            for at, number in enumerate(numbers):
                of_split = found.setdefault(self.splits.of(group[number].file, ""), [])
                assert of_split is not None
                of_split.append(at)
            return found
        return self.splits.of_rows(group[0].file, numbers)

    def _refuse(self, error: BadRecord) -> None:
        if self.options.on_bad_record != "skip":
            raise error
        self.bad_count += 1
        if len(self.bad) < BAD_LISTED:
            self.bad.append(str(error)[:500])

    def _take(self, shards: Shards, file: File, place: str, record: Dict[str, Any]) -> None:
        split = self.splits.of(file, place)
        for one in self.step(record, place) if self.step else [record]:
            try:
                if self.step:
                    self.columns.see(one, widening=False)
                values = self.columns.values(one)
            except (ValueError, TypeError) as error:
                raise BadRecord(place, str(error)) from None
            shards.write(split, example_bytes.example(values))
            self.counted.add(split, values)

    def _leave(self, splits: Dict[str, List[Dict[str, Any]]]) -> None:
        one = self.options
        part = {
            "plan": self.plan, "worker": one.worker, "workers": one.workers, "compression": one.compression,
            "features": {name: asdict(feature) for name, feature in self.columns.features.items()},
            "splits": splits, "counts": self.counted.counts, "label": self.source.label, "classes": self.source.classes,
            "statistics": {name: numbers.to_members() for name, numbers in self.counted.numbers.items()},
            "histograms": {name: one.to_members() for name, one in self.counted.histograms.items()},
            "bad": self.bad, "bad_count": self.bad_count, "asked": self.splits.asked,
        }  # fmt: skip
        write_whole(part_path(one.output, one.worker), json.dumps(part))
        if self.bad_count:
            self.say("%d records were skipped; the first: %s" % (self.bad_count, self.bad[0]))


def plan_of(options: Options, form: str, files: Sequence[File]) -> str:
    """A digest of options and inputs: equal for the workers of one preparation."""
    members = {name: value for name, value in asdict(options).items() if name not in LOCAL}
    members["step"] = _digest_of(options.step)  # each task has it in a folder of its own
    digest = hashlib.sha256(json.dumps([members, form], sort_keys=True).encode("utf-8", "backslashreplace"))
    for one in files:
        digest.update(json.dumps([one.path, one.size]).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


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


def write_whole(path: str, text: str) -> None:
    """The text as a file, whole or not at all."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def merge(output: str, workers: int) -> Tuple[int, int, List[str]]:
    """Write `dataset.json` from the results of all workers. Gives the numbers of records and of skipped ones, and the
    splits that were asked for and are empty."""
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
    write_whole(os.path.join(output, FILE_NAME), to_text(description))
    return total, sum(part["bad_count"] for part in parts), empty_splits(parts, description)
