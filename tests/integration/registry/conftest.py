"""Each test has a store of its own; Ada at the API."""

import pytest

from tests.integration.sending import store

__all__ = ["store"]


@pytest.fixture
def api(ada, signed_in):
    """Ada at the API."""
    return signed_in(ada)
