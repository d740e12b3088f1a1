"""Each test has a store of its own; Ada's two ways in."""

import pytest

from tests.integration.sending import store

__all__ = ["store"]


@pytest.fixture
def api(ada, signed_in):
    """Ada at the API."""
    return signed_in(ada)


@pytest.fixture
def web(ada, client):
    """Ada at the pages."""
    client.force_login(ada)
    return client
