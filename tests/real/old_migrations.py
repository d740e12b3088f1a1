"""The migrations that the squashed ones replace, one by one: what databases of before were made with."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader


class OldLoader(MigrationLoader):
    """Knows no migration of ours that replaces others."""

    def load_disk(self) -> None:
        super().load_disk()
        squashed = {
            key for key, one in self.disk_migrations.items() if one.replaces and one.__module__.startswith("apps.")
        }
        self.disk_migrations = {key: one for key, one in self.disk_migrations.items() if key not in squashed}


def old_executor() -> MigrationExecutor:
    """For the `default` database as it is now; one for each use, as Django's own."""
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    executor.loader = OldLoader(connections[DEFAULT_DB_ALIAS])
    return executor
