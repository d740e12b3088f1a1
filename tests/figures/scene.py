"""A portal in this process for the journeys: an empty database in memory, stores in a folder, an engine of tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.test.utils import (
    override_settings,
    setup_databases,
    setup_test_environment,
    teardown_databases,
    teardown_test_environment,
)

ENGINE = "staged"


@contextmanager
def portal() -> Iterator[None]:
    """Django is set up, and its database has every table. All of it ends with the block."""
    setup_test_environment()
    try:
        databases = setup_databases(verbosity=0, interactive=False)
        try:
            with tempfile.TemporaryDirectory(prefix="yardmaster-figures-") as folder, _own(Path(folder)):
                yield
        finally:
            teardown_databases(databases, verbosity=0)
    finally:
        teardown_test_environment()


def _own(folder: Path) -> override_settings:
    storage: dict[str, Any] = settings.YARDMASTER_STORAGE
    return override_settings(
        YARDMASTER_STORAGE={**storage, "options": {**storage["options"], "root": folder / "objects"}},
        YARDMASTER_LOGS_ROOT=folder / "logs",
        YARDMASTER_ENGINES={ENGINE: {"class": "tests.integration.jobs.world.StagedEngine", "options": {}}},
        YARDMASTER_DEFAULT_ENGINE=ENGINE,
        YARDMASTER_LOCAL_ENGINE_FOR_ALL=True,
    )
