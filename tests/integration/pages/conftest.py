"""Each test has a store of its own."""

from tests.integration.sending import store

__all__ = ["store"]
