from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.client.flaky_server import FlakyServer, flaky_server
from yardmaster_client.transport import Transport


@pytest.fixture
def server() -> Iterator[FlakyServer]:
    with flaky_server() as running:
        yield running


@pytest.fixture
def transport(server: FlakyServer) -> Iterator[Transport]:
    """Waits for nothing between its tries."""
    transport = Transport(server.url, "secret", sleep=lambda seconds: None)
    yield transport
    transport.close()
