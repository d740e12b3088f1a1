"""The world of jobs, with stores of its own."""

from __future__ import annotations

import pytest

from apps.dispatch import messages as dispatch_messages
from apps.jobs.engines.configured import engine_named
from apps.jobs.models import Job
from tests.integration.jobs.world import StagedEngine, World, refuses_transactions
from tests.real.postgres import postgres_cluster, postgres_db

__all__ = ["postgres_cluster", "postgres_db"]


@pytest.fixture
def stores(settings, tmp_path):
    """Objects and logs in the test's own folder."""
    options = settings.YARDMASTER_STORAGE["options"] | {"root": tmp_path / "objects"}
    settings.YARDMASTER_STORAGE = settings.YARDMASTER_STORAGE | {"options": options}
    settings.YARDMASTER_LOGS_ROOT = tmp_path / "logs"


@pytest.fixture
def engine_settings(settings):
    settings.YARDMASTER_ENGINES = {"staged": {"class": "tests.integration.jobs.world.StagedEngine", "options": {}}}
    settings.YARDMASTER_DEFAULT_ENGINE = "staged"


@pytest.fixture
def world(db, engine_settings, stores) -> World:
    return _world()


@pytest.fixture
def postgres_world(postgres_db, engine_settings, stores) -> World:
    """The same world on a real PostgreSQL, for several threads."""
    return _world()


@pytest.fixture
def job(world, ada) -> Job:
    """One that its engine has."""
    job = world.launch(ada)
    world.settle()
    return world.again(job)


def _world() -> World:
    engine = engine_named("staged")
    assert isinstance(engine, StagedEngine)
    engine.before_verb = refuses_transactions()
    return World(engine)


@pytest.fixture
def sent(monkeypatch):
    """What was sent, by a sender whose broker is in memory."""
    messages: list[tuple[str, str]] = []

    class Sender:
        def send_task(self, name, args, **options) -> None:
            messages.append((name, args[0]))

    monkeypatch.setattr(dispatch_messages, "_celery", Sender)
    # A broker that was away for an earlier test is no matter of this one.
    monkeypatch.setattr(dispatch_messages, "_paused_until", 0.0)
    return messages
