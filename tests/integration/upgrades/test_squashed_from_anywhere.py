"""Wherever a database of before stopped, what is left to do follows in an order that works. Without a database."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

from tests.real.old_migrations import OldLoader

Key = tuple[str, str]


@pytest.fixture(scope="module")
def old() -> OldLoader:
    return OldLoader(None)


@pytest.fixture
def _files_read_once(monkeypatch):
    """A loader reads all files, which takes longer than to put them in order."""
    read = MigrationLoader(None)
    names = ("disk_migrations", "unmigrated_apps", "migrated_apps")
    monkeypatch.setattr(
        MigrationLoader, "load_disk", lambda self: [setattr(self, name, getattr(read, name)) for name in names]
    )


def _stops(old: OldLoader) -> list[frozenset[Key]]:
    """What may have been applied: up to each migration in the order of `migrate`, only what each one needs, and what
    some at random need."""
    order = [key for leaf in sorted(old.graph.leaf_nodes()) for key in old.graph.forwards_plan(leaf)]
    order = list(dict.fromkeys(order))
    chance = random.Random(15)
    found = [frozenset(order[:count]) for count in range(len(order) + 1)]
    found += [frozenset(old.graph.forwards_plan(key)) for key in order]
    for _ in range(30):
        some = chance.sample(order, chance.randint(2, 8))
        found.append(frozenset(one for key in some for one in old.graph.forwards_plan(key)))
    return list(dict.fromkeys(found))


def _as_applied(monkeypatch: pytest.MonkeyPatch, keys: Iterable[Key]) -> MigrationExecutor:
    applied = dict.fromkeys(keys)
    monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda self: dict(applied))
    executor = MigrationExecutor(connection)
    executor.loader.check_consistent_history(connection)
    return executor


@pytest.mark.slow
@pytest.mark.usefixtures("_files_read_once")
@pytest.mark.long
def test_from_wherever_a_database_stopped_the_rest_follows_in_order(old, monkeypatch):
    for applied in _stops(old):
        executor = _as_applied(monkeypatch, applied)
        done = set(applied)
        for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes()):
            group = set(migration.replaces) or {(migration.app_label, migration.name)}
            assert not group & done, (migration, "again")
            needed = {parent.key for key in group for parent in old.graph.node_map[key].parents}
            assert needed <= done | group, (migration, needed - done - group)
            done |= group
        assert done == set(old.graph.nodes)
        squashed = {key for key, one in executor.loader.replacements.items() if applied.issuperset(one.replaces)}
        if squashed:
            _as_applied(monkeypatch, applied | squashed)  # as `migrate APP` leaves it: the next one takes it, too


def test_an_empty_database_needs_few_migrations_and_one_of_before_none(old, monkeypatch):
    ours = {one.label for one in apps.get_app_configs() if one.name.startswith("apps.")}
    executor = _as_applied(monkeypatch, [])
    plan = [one for one, _ in executor.migration_plan(executor.loader.graph.leaf_nodes()) if one.app_label in ours]
    made = {one.app_label for one in plan}
    said = "one for each application, and those since: uploads and datasets one, jobs three, workbench four"
    assert len(plan) == len(made) + 9, said
    executor = _as_applied(monkeypatch, old.graph.nodes)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


@pytest.mark.parametrize("loader", [MigrationLoader, OldLoader])
def test_both_end_with_the_models_as_they_are(loader):
    found = loader(None)
    changes = MigrationAutodetector(found.project_state(), ProjectState.from_apps(apps)).changes(found.graph)
    assert changes == {}
