"""The world of jobs, for mails about them."""

from tests.integration.jobs.conftest import engine_settings, stores, world

__all__ = ["engine_settings", "stores", "world"]
