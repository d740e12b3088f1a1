"""The populated portal that requests of every kind are sent to, on SQLite or, if asked for, on PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

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
    """A request closes no connection, as with Django's own client: its end would end what the request is undone by."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in signals:
            signal.connect(close_old_connections)


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
