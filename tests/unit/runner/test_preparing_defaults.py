"""What a preparation does where nothing else is asked for: the size of shards, and the split."""

from __future__ import annotations

import pytest

from yardmaster_runner.prepare import folder, shards
from yardmaster_runner.prepare.__main__ import parser
from yardmaster_runner.prepare.files import File
from yardmaster_runner.prepare.layout import choose
from yardmaster_runner.prepare.splits import Splits
from yardmaster_runner.prepare.work import Options

DEFAULTS = Options("input", "output")
RECORD = bytes(1_000_000)


class LengthWriter:
    """Writes files as long as TensorFlow's, with holes for content: no checksum is computed."""

    def __init__(self, path: str, compression: str) -> None:
        self.file, self.length = open(path, "wb"), 0  # noqa: SIM115 - `close` closes it

    def write(self, record: bytes) -> None:
        self.length += len(record) + shards.OVERHEAD

    def close(self) -> None:
        self.file.truncate(self.length)
        self.file.close()


@pytest.mark.parametrize("at_once", [1, 64])
def test_shards_have_100_to_200_megabytes_unless_another_size_is_asked_for(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(shards, "_tensorflows_writer", lambda: LengthWriter)
    one = shards.Shards(str(tmp_path), DEFAULTS.compression, DEFAULTS.shard_bytes, DEFAULTS.records_per_shard, 0, 1)
    for _ in range(640 // at_once):
        if at_once == 1:
            one.write("train", RECORD)
        else:
            one.write_all("train", [RECORD] * at_once)
    *full, last = one.close()["train"]
    assert len(full) >= 3
    assert all(100_000_000 <= shard["size"] <= 200_000_000 for shard in full), full
    assert 0 < last["size"] <= 200_000_000
    assert sum(shard["records"] for shard in [*full, last]) == 640


def test_nine_of_ten_files_are_for_training_unless_another_split_is_asked_for():
    files = [File(f"{label}/{number}.txt", 1) for number in range(500) for label in ("neg", "pos")]
    chosen = choose(files, DEFAULTS.format, False)
    splits = Splits(chosen, [], False, DEFAULTS.seed, folder.shares(DEFAULTS.split))
    found = [splits.of(one, "") for one in files]
    assert set(found) == {"train", "validation"}
    assert 870 <= found.count("train") <= 930


def test_the_command_has_the_same_defaults():
    words = parser().parse_args(["--input", "input", "--output", "output"])
    assert (words.shard_bytes, words.split, words.seed) == (DEFAULTS.shard_bytes, DEFAULTS.split, DEFAULTS.seed)
    assert words.records_per_shard == DEFAULTS.records_per_shard
