"""The populated portal that requests of every kind are sent to, on SQLite or, if asked for, on PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.management import call_command
from django.db import connections

from tests.fuzz.world import FuzzWorld, fuzz_world
from tests.real.postgres import TEMPLATE, default_database, running_cluster

ON_POSTGRES = "YARDMASTER_TEST_FUZZ_POSTGRES" in os.environ


@contextmanager
def on_postgres(blocker) -> Iterator[None]:
    """A server of its own, with a migrated database."""
    with running_cluster() as cluster:
        cluster.create(TEMPLATE)
        with blocker.unblock(), default_database(cluster.settings(TEMPLATE)):
            call_command("migrate", verbosity=0, interactive=False)
            with connections_kept():
                yield


@contextmanager
def connections_kept() -> Iterator[None]:
    """Neither a request nor a piece of a file closes the connection: its end would end what the request is undone by.
    SQLite's in memory is never closed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections["default"], "close_if_unusable_or_obsolete", lambda: None)
        yield


@pytest.fixture(scope="module")
def fuzzed(request, tmp_path_factory, django_db_blocker) -> Iterator[FuzzWorld]:
    folder = tmp_path_factory.mktemp("fuzz")
    if ON_POSTGRES:
        with on_postgres(django_db_blocker), fuzz_world(folder) as found:
            yield found
    else:
        request.getfixturevalue("django_db_setup")
        with django_db_blocker.unblock(), fuzz_world(folder) as found:
            yield found
