"""Nodes that are killed, and nodes that join, in the middle of a scan: every row arrives, and none twice."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from portal.env import task_python
from tests.integration.ignite.conftest import environment_of, in_task
from tests.real.ignite import Ignite, ignite
from tests.real.scene import until

pytestmark = [pytest.mark.ignite, pytest.mark.tensorflow, pytest.mark.slow]
ROWS = 20_000


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Ignite]:
    with ignite(tmp_path / "three", 3, secure=True) as server:
        server.fill(f"longs few-longs 0 {ROWS}")
        yield server


def scanned(server: Ignite, meanwhile: Callable[[], None]) -> dict:
    """What a scan finds that stands still after some rows, until something was done to the cluster."""
    command = [
        task_python(),
        str(Path(__file__).with_name("with_ignite.py")),
        "scan",
        "few-longs",
        str(ROWS),
        "3",
        "50",
        "1500",
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment_of(server),
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            line = process.stdout.readline()
            assert line.startswith("paused"), process.stderr.read() if process.stderr else line
            meanwhile()
            output, errors = process.communicate("continue\n", timeout=100)
        finally:
            process.kill()
    assert process.returncode == 0, errors[-3000:]
    return json.loads(output.splitlines()[-1])


@pytest.mark.long
@pytest.mark.parametrize("number", [0, 1])
def test_a_node_that_is_killed_within_a_scan_loses_no_row_and_doubles_none(three: Ignite, number: int) -> None:
    found = scanned(three, lambda: three.kill(number))
    assert found == {"rows": ROWS, "lost": [], "doubled": [], "foreign": [], "partitions": 8}


@pytest.mark.long
def test_a_scan_follows_partitions_that_move_to_a_new_node(three: Ignite) -> None:
    def changed() -> None:
        three.add()
        new = (three.folder / "node-3" / "ready").read_text().strip()
        until(lambda: new in in_task(three, "with_ignite.py", "owners", "few-longs"), 60, "partitions to move")
        three.kill(2)

    found = scanned(three, changed)
    assert found == {"rows": ROWS, "lost": [], "doubled": [], "foreign": [], "partitions": 8}
