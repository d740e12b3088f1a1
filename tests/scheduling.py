"""Which tests one worker of pytest-xdist runs in a row, and in which order: those of a file, those that share what is
dear to start, and what takes long first, so that no worker is left with a long file at the end. Files that compute and
files that wait take turns, so that two workers seldom compute at the same time.

A plug-in (`-p tests.scheduling`, as `make test` has it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TypeVar

import pytest
from xdist.scheduler import LoadFileScheduling

T = TypeVar("T")

FIRST = ("tests/cluster/test_losses_in_pods.py",)
"""Files that take as long as half of all that run with them: a worker that began one last would be waited for."""
BUSY = (
    "tests/browser",
    "tests/integration/workbench",
    "tests/integration/spark",
    "tests/integration/examples",
    "tests/integration/jobs",
    "tests/contract",
)
"""Folders whose tests keep a core busy (browsers, training), in the order of the time that one of their files takes."""
WAITING = (
    "tests/hostile",
    "tests/integration/faults",
    "tests/integration/client",
    "tests/integration/local_engine",
    "tests/integration/hosts",
    "tests/integration/ignite_store",
    "tests/integration/ignite",
    "tests/integration/runner",
    "tests/integration/portal",
    "tests/integration/celery",
)
"""Folders whose tests wait half of their time, for clocks and for processes that start, in the same order."""

SHARED = {
    "full world": (
        "tests/browser/test_every_page.py",
        "tests/browser/test_keyboard.py",
        "tests/browser/test_trouble.py",
        "tests/browser/test_try_it.py",
    ),
    "Ignite": ("tests/integration/ignite/",),
    "Ignite as a store": ("tests/integration/ignite_store/", "tests/contract/test_storage_contract.py"),
    "Spark": ("tests/integration/spark/",),
}
"""Files, and whole folders, that use one fixture of a worker's whole session, where to make it takes a minute."""


class _Scheduling(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return next((lane for lane, shared in SHARED.items() if file.startswith(shared)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _Scheduling:
    return _Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # else files with many tests, which are short ones, come first


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = in_turn(items, lambda item: item.nodeid)  # files stay whole, and in their order


def in_turn(items: Sequence[T], nodeid: Callable[[T], str]) -> list[T]:
    """A file that keeps a core busy, then one that waits, and so on, the long ones first; then all others."""
    files: dict[str, list[T]] = {}
    for item in items:  # those of one file need not follow each other
        files.setdefault(nodeid(item).partition("::")[0], []).append(item)
    busy, waiting = ([file for folder in folders for file in files if file.startswith(folder + "/")]
                     for folders in (BUSY, WAITING))  # fmt: skip
    early = [file for pair in zip_longest(busy, waiting) for file in pair if file]
    first = [file for file in FIRST if file in files]
    late = [file for file in files if file not in {*first, *early}]
    return [item for file in [*first, *early, *late] for item in files[file]]
