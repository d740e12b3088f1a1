"""Which tests one worker of pytest-xdist runs in a row, and in which order: those of a file, those that share what is
dear to start, and what takes long first, so that no worker is left with a long file at the end.

A plug-in (`-p tests.lanes`, as `make test` has it).
"""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadFileScheduling

LONGEST = (
    "tests/browser",
    "tests/hostile",
    "tests/integration/examples",
    "tests/integration/faults",
    "tests/integration/client",
    "tests/integration/local_engine",
    "tests/integration/runner",
    "tests/integration/portal",
    "tests/integration/celery",
    "tests/integration/jobs",
)
"""Folders in the order of the time that one of their files takes; all others follow."""

SHARED = {
    "full world": (
        "tests/browser/test_every_page.py",
        "tests/browser/test_keyboard.py",
        "tests/browser/test_trouble.py",
    )
}
"""Files that use one fixture of a worker's whole session, where to make it takes a minute."""
_LANE_OF = {file: lane for lane, files in SHARED.items() for file in files}


class _Lanes(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return _LANE_OF.get(file, file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _Lanes:
    return _Lanes(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # else files with many tests, which are short ones, come first


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: place_of(item.nodeid))  # files stay whole, and in their order


def place_of(nodeid: str) -> int:
    """How early a test begins: the lower, the earlier."""
    return next((place for place, folder in enumerate(LONGEST) if nodeid.startswith(folder)), len(LONGEST))
