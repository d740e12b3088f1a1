"""The examples in `examples/ignite` on a real Ignite, and their job files."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from portal.env import task_python
from tests.integration.ignite.conftest import Ignite, environment_of
from tests.real.portal import free_port
from yardmaster.code.preflight import preflight
from yardmaster.ids import new_id
from yardmaster.job.spec_json import spec_from_json

pytestmark = [pytest.mark.ignite, pytest.mark.slow, pytest.mark.tensorflow]
FOLDER = Path(__file__).parents[3] / "examples" / "ignite"
LEARNED = "slope 3.00, offset -2.00"


def start(server: Ignite, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [task_python(), *arguments], cwd=FOLDER, text=True, env=environment_of(server) | variables,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def said(process: subprocess.Popen[str]) -> str:
    try:
        text = process.communicate(timeout=240)[0]
    finally:
        process.kill()
    assert process.returncode == 0, text[-3000:]
    return text


@pytest.mark.parametrize("job_file", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_job_file_of_ignite_is_valid_and_fits_two_cores(job_file: Path) -> None:
    spec = spec_from_json(yaml.safe_load(job_file.read_text()) | {"code": str(new_id())})
    assert spec.total().cpu <= 2
    assert preflight(spec, {path.name: path.read_text() for path in FOLDER.glob("*.py")}) == []


def test_a_training_sees_the_rows_that_are_inserted_meanwhile(plain: Ignite) -> None:
    for _ in range(2):  # the second begins with a table of its own, too
        text = said(start(plain, "growing.py", "--passes=12"))
        found = re.findall(r"pass \d+: (\d+) rows, loss ([\d.]+)", text)
        rows, losses = [int(one) for one, _ in found], [float(one) for _, one in found]
        assert len(rows) == 12
        assert rows == sorted(rows)
        assert all(100 * number <= count <= 1200 for number, count in enumerate(rows, 1))
        assert losses[0] > losses[1] > losses[3] > losses[-1]
        assert LEARNED in text


@pytest.mark.long
def test_gradients_of_the_workers_partitions_are_summed_by_the_chief(plain: Ignite) -> None:
    assert "rows" in said(start(plain, "points.py", "--rows=600"))
    cluster = {"ps": [f"127.0.0.1:{free_port()}"], "worker": [f"127.0.0.1:{free_port()}" for _ in range(2)]}
    tasks = [("ps", 0), ("worker", 0), ("worker", 1)]
    started = [
        start(plain, "gradients.py", TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": role, "index": at}}))
        for role, at in tasks
    ]
    try:
        chief, other = said(started[1]), said(started[2])
    finally:
        for one in started:
            one.kill()
            one.communicate()
    assert LEARNED in chief
    assert LEARNED in other
    every, own = map(int, re.findall(r"step 1: (\d+) rows of all workers, (\d+) of the chief", chief)[0])
    assert every >= 600
    assert 0 < own < every
