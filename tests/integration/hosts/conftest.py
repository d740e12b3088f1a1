"""Three machines for all tests of a file, and an engine with a home of its own for each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.engine_harness import HostsHarness
from tests.real.machines import Machines, machines


@pytest.fixture(autouse=True)
def _quickly_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is silent is away after 3 s, not 15."""
    monkeypatch.setattr("yardmaster.engines.hosts.connection._ALIVE_EVERY", 1)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Each has space for two tasks."""
    with machines(tmp_path_factory.mktemp("hosts"), 3, "cores = 0.7") as made:
        yield made


@pytest.fixture
def harness_of(three: Machines, tmp_path: Path) -> Iterator[Callable[..., HostsHarness]]:
    """Makes an engine as a process of the portal has it. Each call is another process."""
    made: list[HostsHarness] = []

    def make(**options: object) -> HostsHarness:
        made.append(HostsHarness(tmp_path / str(len(made)), three, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
    for folder in ("placements", "seen", "machines"):
        shutil.rmtree(three.portal / folder, ignore_errors=True)


@pytest.fixture
def harness(harness_of: Callable[..., HostsHarness]) -> HostsHarness:
    return harness_of()
