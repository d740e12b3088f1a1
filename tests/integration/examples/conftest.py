"""The digits, prepared once for all tests of the examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.digits import digits as prepared


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the shards, as `prepare.py` writes them."""
    return prepared(tmp_path_factory.mktemp("digits") / "data")
