"""The squashed migrations make the tables that the old ones made, and databases of before are brought there, too."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from portal.env import sqlite as database_of
from tests.real.kept import kept
from tests.real.migrated import migrations_digest
from tests.real.old_migrations import old_executor
from tests.real.postgres import Cluster, default_database, running_cluster
from tests.real.tables import rows_of_default, schema_of_default

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
MIDDLE = ("jobs", "0030_holds")
NAMES_FROM_BEFORE = {
    "jobs_jobversion_job_id_880a1cc9": "jobs_jobinput_job_id_f2db11a5",
    "jobs_jobversion_id_seq": "jobs_jobinput_id_seq",
    "jobs_jobversion_pkey": "jobs_jobinput_pkey",
    "namespaces_place_next_look_at_c3c17772": "namespaces_enginenamespace_next_look_at_757c82e8",
    "namespaces_place_setbacks_check": "namespaces_enginenamespace_setbacks_check",
    "namespaces_place_pkey": "namespaces_enginenamespace_pkey",
    "registry_model_pkey1": "registry_model_pkey",
}
"""On PostgreSQL three tables were renamed, and what it and Django named after them was not. Nothing goes by these
names: Django finds constraints by their columns."""


class Files:
    """Databases of SQLite."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def settings(self, name: str) -> dict[str, Any]:
        return database_of(str(self._folder / f"{name}.sqlite3"))

    def create(self, name: str, template: str = "") -> None:
        with contextlib.closing(sqlite3.connect(self._folder / f"{name}.sqlite3")) as new:
            if template:
                with contextlib.closing(sqlite3.connect(self._folder / f"{template}.sqlite3")) as source:
                    source.backup(new)

    def create_kept(self, name: str, kept_as: str, fill: Callable[[], object], template: str = "") -> None:
        """As `Cluster.create_kept`."""
        file = self._folder / f"{name}.sqlite3"

        def fill_and_copy(draft: Path) -> None:
            self.create(name, template)
            fill()
            shutil.copyfile(file, draft)

        shutil.copyfile(kept(f"{kept_as}.sqlite3", migrations_digest(), fill_and_copy), file)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def databases(request, tmp_path_factory, django_db_blocker) -> Iterator[Files | Cluster]:
    """`middle` stopped at MIDDLE, `old` has all that is replaced, and `new` is made by what replaces it. The first two
    take half a minute of a core each, and are kept while the migrations stay as they are."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            made: Files | Cluster = Files(tmp_path_factory.mktemp("databases"))
        else:
            made = stack.enter_context(running_cluster())
        stack.enter_context(django_db_blocker.unblock())
        made.create_kept("middle", "stopped", lambda: _in(made, "middle", lambda: _by_old_files(stop=MIDDLE)))
        made.create_kept("old", "replaced", lambda: _in(made, "old", _by_old_files), template="middle")
        made.create("new")
        _in(made, "new", lambda: call_command("migrate", verbosity=0))
        yield made


def _in(databases: Files | Cluster, name: str, act: Callable[[], Any]) -> Any:
    with default_database(databases.settings(name)):
        return act()


def _by_old_files(stop: tuple[str, str] | None = None) -> None:
    executor = old_executor()
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if stop:
        plan = plan[: 1 + next(at for at, (one, _) in enumerate(plan) if (one.app_label, one.name) == stop)]
    executor.migrate(None, plan)


def _made() -> set[str]:
    found = "\n".join(sorted(schema_of_default()))
    for before, after in NAMES_FROM_BEFORE.items():
        found = found.replace(f" {before}", f" {after}")
    return {_same_however_written(line) for line in found.split("\n")}


def _same_however_written(line: str) -> str:
    """A list of texts in a condition, which PostgreSQL writes in another way once it was loaded from a dump."""
    return re.sub(r"::(?:text|character varying)(?:\[\])?|[()]", "", line) if "ARRAY[" in line else line


def _left_to_do() -> list[Any]:
    executor = MigrationExecutor(connection)
    return executor.migration_plan(executor.loader.graph.leaf_nodes())


def test_the_same_tables_indexes_constraints_and_triggers(databases):
    old, new = (_in(databases, name, _made) for name in ("old", "new"))
    assert sorted(old - new) == []
    assert sorted(new - old) == []
    assert sum("audit_refuse" in line for line in new) >= 2
    assert len(new) > 1_000


def test_the_same_rows_are_there_to_begin_with(databases):
    _in(databases, "old", lambda: call_command("migrate", verbosity=0))
    assert _in(databases, "old", rows_of_default) == _in(databases, "new", rows_of_default)


def test_a_database_with_all_that_is_replaced_has_nothing_to_do(databases):
    databases.create("again", template="old")

    def migrate() -> None:
        before = schema_of_default()
        assert _left_to_do() == []
        call_command("migrate", verbosity=0)
        applied = set(MigrationRecorder(connection).applied_migrations())
        assert applied >= set(MigrationExecutor(connection).loader.replacements)
        assert schema_of_default() == before

    _in(databases, "again", migrate)


def test_a_database_that_stopped_in_the_middle_goes_on_by_the_old_files(databases):
    databases.create("resumed", template="middle")

    def migrate() -> set[str]:
        left = {(one.app_label, one.name) for one, _ in _left_to_do()}
        assert ("jobs", "0031_usage_indexes") in left
        assert ("jobs", "0001_squashed_0043") not in left
        call_command("migrate", verbosity=0)
        assert _left_to_do() == []
        return _made()

    assert _in(databases, "resumed", migrate) == _in(databases, "old", _made)


def test_one_that_was_made_new_knows_all_that_was_replaced(databases):
    """A portal of before could use it."""
    applied = {name: _in(databases, name, _applied) for name in ("old", "new")}
    assert applied["old"] <= applied["new"]


def _applied() -> set[tuple[str, str]]:
    return set(MigrationRecorder(connection).applied_migrations())
