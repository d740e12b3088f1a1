"""A world whose engine keeps homes, and refuses to be asked about them within a transaction."""

from __future__ import annotations

import uuid

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.jobs.engines.configured import engine_named
from apps.namespaces.models import Namespace, Quota
from apps.uploads.storage_ledger import storage_use
from apps.workbench.home_keeping import home_keep
from apps.workbench.models import Home
from tests.integration.jobs.world import StagedEngine, World, refuses_transactions
from yardmaster.engines.base import HomeUse
from yardmaster.engines.fake import EngineWithHomes, EngineWithNamespaces

GIB = 1 << 30


class HomeEngine(EngineWithHomes, EngineWithNamespaces, StagedEngine):
    """Not to be asked within a transaction."""

    def __init__(self, *, name: str = "staged") -> None:
        super().__init__(name=name)

    def home_use(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> HomeUse:
        with self._verb("home_use"):
            return super().home_use(namespace_id, owner_id)

    def remove_home(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> bool:
        with self._verb("remove_home"):
            return super().remove_home(namespace_id, owner_id)


@pytest.fixture
def home_world(db, settings, stores) -> World:
    """`stores` comes with the tests of jobs."""
    settings.YARDMASTER_ENGINES = {"staged": {"class": f"{__name__}.HomeEngine", "options": {}}}
    settings.YARDMASTER_DEFAULT_ENGINE = "staged"
    engine = engine_named("staged")
    engine.before_verb = refuses_transactions()
    return World(engine)


def limited(namespace: Namespace, storage: int) -> Namespace:
    Quota.objects.update_or_create(namespace=namespace, defaults={"storage": storage, "cpu": None, "memory": None})
    return namespace


def used(namespace: Namespace) -> int:
    use = storage_use(namespace)
    assert use.reserved == 0
    return use.used


def look(user: User) -> None:
    """A worker looks at the homes of this user."""
    Home.objects.filter(owner=user).update(next_look_at=timezone.now())
    for home_id in Home.objects.filter(owner=user).values_list("pk", flat=True):
        home_keep(home_id)
