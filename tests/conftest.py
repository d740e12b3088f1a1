"""Hypothesis everywhere: the same examples on every run, no clock, and few enough that the suite stays short.
`HYPOTHESIS_PROFILE=explore` looks for new examples, many of them. And the database of tests that use Django's own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.core import management
from hypothesis import HealthCheck, settings

from tests.real.migrated import migrated

_CALM = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "same", derandomize=True, deadline=None, max_examples=100, database=None, suppress_health_check=_CALM
)
settings.register_profile("explore", deadline=None, max_examples=3000, suppress_health_check=_CALM)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Made bytes, such as archives, may hold the time: all workers must collect the same names."""
    return f"{argname}-of-{len(val)}" if isinstance(val, bytes) and len(val) > 16 else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Schemathesis gives the tests of all operations one node id, and of tests with the same id pytest-xdist runs one:
    so each gets its own. That any others share one is an error."""
    for item in items:
        if type(item).__module__.startswith("schemathesis."):
            item._id = type(item.id).parse(f"{item.nodeid.partition('[')[0]}[{item.name.partition('[')[2]}")
    shared = [name for name, times in Counter(item.nodeid for item in items).items() if times > 1]
    if shared:
        raise pytest.UsageError(f"{len(shared)} node ids belong to several tests, of which one would run: {shared[:5]}")


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def _copy_instead_of_migrating() -> Iterator[pytest.MonkeyPatch]:
    """Django fills the database of tests from a migrated one: each worker would migrate for seconds."""
    really = management.call_command

    def call_command(name: str, *arguments: Any, **options: Any) -> Any:
        if name != "migrate":
            return really(name, *arguments, **options)
        from django.db import connections

        own = connections[options["database"]]
        own.ensure_connection()
        with contextlib.closing(sqlite3.connect(str(migrated()))) as template:
            template.backup(own.connection)
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(management, "call_command", call_command)
        yield patch


@pytest.fixture(scope="session")
def django_db_setup(_copy_instead_of_migrating: pytest.MonkeyPatch, django_db_setup: None) -> None:
    """pytest-django's own, which has now made the database."""
    _copy_instead_of_migrating.undo()
