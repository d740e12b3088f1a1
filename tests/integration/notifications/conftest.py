"""The world of jobs, for mails about them."""

from tests.integration.jobs.conftest import engine_settings, sent, stores, world

__all__ = ["engine_settings", "sent", "stores", "world"]
