"""A world whose engine keeps a place for every namespace, and refuses to be asked within a transaction."""

from __future__ import annotations

import uuid

import pytest

from apps.jobs.engines.configured import engine_named
from tests.integration.jobs.world import StagedEngine, World, refuses_transactions
from yardmaster.engines.base import Remains
from yardmaster.engines.fake import EngineWithNamespaces
from yardmaster.queueing.ledger import Quota


class PlacedEngine(EngineWithNamespaces, StagedEngine):
    """`asked` lists (verb, namespace)."""

    def __init__(self, *, name: str = "placed") -> None:
        super().__init__(name=name)
        self.asked: list[tuple[str, uuid.UUID]] = []

    def shape(self, namespace_id: uuid.UUID, quota: Quota, portal_url: str) -> tuple[str, ...]:
        with self._verb("shape"):
            self.asked.append(("shape", namespace_id))
            return super().shape(namespace_id, quota, portal_url)

    def remove(self, namespace_id: uuid.UUID) -> Remains:
        with self._verb("remove"):
            self.asked.append(("remove", namespace_id))
            return super().remove(namespace_id)


@pytest.fixture
def placed_world(db, settings, stores) -> World:
    """`stores` comes with the tests of jobs."""
    settings.YARDMASTER_ENGINES = {"placed": {"class": f"{__name__}.PlacedEngine", "options": {}}}
    settings.YARDMASTER_DEFAULT_ENGINE = "placed"
    engine = engine_named("placed")
    engine.before_verb = refuses_transactions()
    return World(engine)
