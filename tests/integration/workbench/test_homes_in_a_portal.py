"""The home of a Jupyter in a real portal on the local engine: counted while it is used, and deleted by its owner."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.portal import RealPortal
from yardmaster_client import Yardmaster

pytestmark = [pytest.mark.slow, pytest.mark.workbench, pytest.mark.timeout(300)]

PATIENCE = 90.0


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_it_counts_against_the_quota_until_its_owner_deletes_it(whole_portal: RealPortal):
    with Yardmaster(whole_portal.url, whole_portal.token_of("ada", is_staff=True)) as portal:
        me = portal.me()
        namespace = next(one["id"] for one in me["namespaces"] if one["personal"])
        home = whole_portal.home / "local" / "workbench" / namespace / me["id"]
        written(home / "data" / "large")
        session = portal.sessions.start("jupyter")
        until(lambda: (kept := portal.sessions.get(session.id).files) is not None and kept.size >= 2 << 20)
        portal.sessions.stop(session.id)
        until(lambda: portal.sessions.get(session.id).state == "stopped")
        portal.sessions.delete_files(session.id)
        until(lambda: portal.sessions.get(session.id).files is None)
        assert not home.exists()


def written(path: Path) -> None:
    """What an earlier session left."""
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.write(os.urandom(2 << 20))
        os.fsync(file.fileno())
