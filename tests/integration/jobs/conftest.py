"""The world of jobs, with stores of its own."""

from __future__ import annotations

import pytest

from apps.jobs.engines import engine_named
from tests.integration.jobs.world import StagedEngine, World, transaction_watch


@pytest.fixture
def stores(settings, tmp_path):
    """Objects and logs in the test's own folder."""
    options = settings.YARDMASTER_STORAGE["options"] | {"root": tmp_path / "objects"}
    settings.YARDMASTER_STORAGE = settings.YARDMASTER_STORAGE | {"options": options}
    settings.YARDMASTER_LOGS_ROOT = tmp_path / "logs"


@pytest.fixture
def world(db, settings, stores) -> World:
    settings.YARDMASTER_ENGINES = {"staged": {"class": "tests.integration.jobs.world.StagedEngine", "options": {}}}
    settings.YARDMASTER_DEFAULT_ENGINE = "staged"
    engine = engine_named("staged")
    assert isinstance(engine, StagedEngine)
    engine.in_transaction = transaction_watch()
    return World(engine)
