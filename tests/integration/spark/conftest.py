"""A portal whose jobs have Spark clusters on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.scene import Scene, scene


@pytest.fixture(scope="package")
def one() -> Iterator[Scene]:
    with scene() as made:
        yield made
