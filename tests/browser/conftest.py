"""Browsers and portals for the tests of the pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, StorageState

from tests.browser.visitor import DESK, Look, Visitor, chromium, cookies_of, visitor
from tests.browser.world import World, world


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser" in str(item.path):
            item.add_marker("browser")
            item.add_marker("slow")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))  # the first of a module waits for its portal, too


@pytest.fixture(autouse=True)
def _cheap_passwords_and_no_counts() -> None:
    """These tests use no database of their own: what `tests/conftest.py` prepares for Django is not needed here."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for a module: Playwright's loop must not run beside the loops of other modules' tests."""
    with chromium() as one:
        yield one


@pytest.fixture(scope="package")
def full_world() -> Iterator[World]:
    """A portal with everything in it. Tests look at it and leave it as it is. Its files follow each other
    (`tests.scheduling`), and it ends with them: its training would slow down all others."""
    with world() as one:
        yield one


@pytest.fixture(scope="module")
def empty_world() -> Iterator[World]:
    """A portal with digits as code and data, and no job: for tests that launch and break things."""
    with world(trained=False) as one:
        yield one


@pytest.fixture(scope="module")
def ada_state(browser: Browser, full_world: World) -> StorageState:
    """Ada's cookies in the full world."""
    return cookies_of(browser, full_world.url, "ada")


@pytest.fixture(scope="module")
def owner_state(browser: Browser, empty_world: World) -> StorageState:
    """Ada's cookies in the empty world."""
    return cookies_of(browser, empty_world.url, "ada")


@pytest.fixture
def owner(browser: Browser, empty_world: World, owner_state: StorageState) -> Iterator[Visitor]:
    """Ada, signed in to the empty world, where she may change things."""
    with visitor(browser, empty_world.url, storage_state=owner_state) as one:
        yield one


@pytest.fixture
def look() -> Look:
    """Overridden where a test is repeated for several looks."""
    return DESK


@pytest.fixture
def ada(browser: Browser, full_world: World, ada_state: StorageState, look: Look) -> Iterator[Visitor]:
    """Ada, signed in to the full world."""
    with visitor(browser, full_world.url, look, storage_state=ada_state) as one:
        yield one
