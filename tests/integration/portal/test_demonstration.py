"""`make demo` on MinIO: the digits, and the text example from raw text to the answers of the served model."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real import reviews
from tests.real.portal import ROOT, free_port
from tests.real.scene import end_all_runs


@pytest.mark.slow
@pytest.mark.s3
@pytest.mark.tensorflow
@pytest.mark.timeout(600)
def test_the_digits_are_told_to_their_end_on_minio(tmp_path: Path) -> None:
    said = _told(tmp_path, "digits")
    assert len(_curves(said)) == 1, said


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.s3
@pytest.mark.tensorflow
@pytest.mark.timeout(600)
def test_both_examples_are_told_to_their_ends_on_minio(tmp_path: Path) -> None:
    reviews.texts()  # skips where the package index cannot be reached, and fills the cache
    said = _told(tmp_path, "all")
    assert "Dataset reviews-raw, version 1: 300 files" in said
    assert "Published reviews, version 1" in said
    assert re.search(r"^test accuracy +0\.\d{4} \(must be at least 0\.\d{4}: within 0\.\d{4} of the linear", said, re.M)
    assert re.search(r"^a linear model's +0\.\d{4}$", said, re.MULTILINE)
    assert len(_curves(said)) == 2, said
    assert len(re.findall(r"^  (?:pos|neg) \((?:0\.\d\d|1\.00)\)  ", said, re.MULTILINE)) == 3


def _told(home: Path, example: str) -> str:
    """What the demonstration of this example says, which must end well."""
    base = {name: value for name, value in os.environ.items() if not name.startswith(("YARDMASTER_", "PYTEST_"))}
    environment = base | {"YARDMASTER_HOME": str(home), "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}"}
    words = ["--port", str(free_port()), "--store", "minio", "--example", example, "--most", "150", "--workers", "1"]
    told = subprocess.Popen(
        [sys.executable, "-m", "portal.demo", *words, "--exit"], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = told.communicate(timeout=500)
    finally:
        if told.poll() is None:
            told.send_signal(signal.SIGINT)
            told.communicate(timeout=60)
        end_all_runs(home)
    assert told.returncode == 0, said
    return said


def _curves(said: str) -> list[str]:
    """Of each example, as the API gives them; each has points of its loss and its accuracy."""
    curves = re.findall(r"^curves +(.*)$", said, re.MULTILINE)
    for one in curves:
        points = {tag: int(count) for tag, count in re.findall(r"(\S+) \((\d+) points\)", one)}
        assert points.get("loss", 0) >= 2, one
        assert points.get("accuracy", 0) >= 2, one
    return curves


@pytest.mark.parametrize(
    ("words", "stories"),
    [
        ([], ["Digits"]),
        (["--store", "minio"], ["Digits", "Reviews"]),
        (["--store", "minio", "--example", "digits"], ["Digits"]),
        (["--example", "reviews"], ["Reviews"]),
        (["--example", "all"], ["Digits", "Reviews"]),
    ],
)
def test_the_store_and_the_option_say_which_stories_are_told(
    monkeypatch: pytest.MonkeyPatch, words: list[str], stories: list[str]
) -> None:
    from portal.demo import __main__ as demo

    monkeypatch.setattr(sys, "argv", ["portal.demo", *words])
    told = demo._stories(demo._options(), None)  # type: ignore[arg-type]
    assert [type(one).__name__ for one in told] == stories
