"""What frameworks write at every start is no error, no warning and no last words; a real error always is."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.unit.logs.conftest import stream
from yardmaster.logs.levels import Level, level_of
from yardmaster.logs.search import NOTHING_COUNTED, count_levels
from yardmaster.logs.store import LogStore
from yardmaster_runner.noise import BY_FILE, PREFIX, WHOLE, is_noise
from yardmaster_runner.reasons import explain_end

ROOT = Path(__file__).parents[3]
CASES = [line for line, _ in json.loads(Path(__file__).with_name("level_cases.json").read_text())]
NOISE = [line for line in CASES if is_noise(line)]


def test_the_viewer_has_the_same_list() -> None:
    source = (ROOT / "frontend/src/log/noise.ts").read_text()
    assert re.findall(r"String\.raw`(.*?)`[,;]\n", source) == [PREFIX, *BY_FILE, *WHOLE]


def test_the_noise_of_a_start_is_not_counted_and_a_real_error_among_it_is(store: LogStore) -> None:
    assert len(NOISE) > 10
    real = (
        "2024-05-01 12:00:00.123456: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:8454] Could not create"
    )
    store.append(
        stream(), 0, "".join(f"{line}\n" for line in [*NOISE, real, "W0502 12:00:00.000000 140 x.py:3] hm"]).encode()
    )
    counts = count_levels(store, stream(), NOTHING_COUNTED, float("inf"))
    assert (counts.errors, counts.warnings) == (1, 1)
    assert counts.first_error is not None
    assert counts.first_error.number == len(NOISE)


def test_noise_is_known_by_the_file_that_writes_it_and_never_by_a_word_alone() -> None:
    line = next(line for line in NOISE if "cuda_dnn.cc" in line)
    for other in ("cuda_dnn.py", "my_cuda_dnn.cc", "cuda_dnn.cc"):
        assert is_noise(line.replace("cuda_dnn.cc", other)) == (other == "cuda_dnn.cc")
    assert not is_noise(line.partition("] ")[2])
    assert not is_noise("x " + line)
    assert level_of(line.replace("Unable to register", "Failed to load").encode()) is Level.ERROR


def test_any_line_is_looked_at_within_a_bound() -> None:
    assert not is_noise("E0000 00:00:1.1 12 " + "a/" * 1_000_000)
    assert not is_noise("E" * 5_000_000)


def test_a_script_that_says_nothing_else_does_not_end_with_noise() -> None:
    tail = "\n".join(["giving up", *NOISE]).encode()
    assert explain_end(3, tail, False, False).message == "giving up"
    assert explain_end(3, "\n".join(NOISE).encode(), False, False).message == ""
