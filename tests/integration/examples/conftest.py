"""The digits, prepared once for all tests of the examples."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from portal.env import task_python
from tests.integration.examples.by_hand import EXAMPLES


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the shards, as `prepare.py` writes them."""
    folder = tmp_path_factory.mktemp("digits") / "data"
    subprocess.run([task_python(), EXAMPLES / "digits" / "prepare.py", folder], check=True, capture_output=True)
    return folder
