"""What somebody without any credential gets from a running portal: nothing but the way in."""

from __future__ import annotations

import httpx2
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.linux]


@pytest.mark.parametrize("path", ["jobs", "datasets", "code", "models", "namespaces", "users", "audit", "uploads"])
def test_every_list_of_the_api_asks_who_is_there(stranger: httpx2.Client, path: str):
    answer = stranger.get(f"/api/v1/{path}/")
    assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")
