"""The world of jobs, and a ledger that tests write by hand."""

from __future__ import annotations

from tests.integration.jobs.conftest import (
    engine_settings,
    job,
    postgres_cluster,
    postgres_db,
    stores,
    world,
)

__all__ = ["engine_settings", "job", "postgres_cluster", "postgres_db", "stores", "world"]
