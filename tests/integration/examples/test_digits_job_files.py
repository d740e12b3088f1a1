"""The job files beside the scripts are valid specifications of code that passes preflight."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.integration.examples.by_hand import EXAMPLES
from yardmaster.code.preflight import preflight
from yardmaster.ids import new_id
from yardmaster.job.spec import Strategy, TrainingSpec
from yardmaster.job.spec_json import spec_from_json
from yardmaster.job.strategy import only_serves

JOB_FILES = sorted((EXAMPLES / "digits").glob("*.yaml"))


def spec_of(job_file: Path) -> TrainingSpec:
    """The spec of a job file, its names replaced by ids as the command line does."""
    job = yaml.safe_load(job_file.read_text())
    if not only_serves(Strategy(job["strategy"])):
        assert job.pop("code") == "digits"
        job["code"] = str(new_id())
    assert job.pop("inputs") == [{"dataset": "digits"}]
    return spec_from_json(job | {"inputs": [{"dataset_version": str(new_id())}]})


def test_every_strategy_has_a_job_file() -> None:
    assert [path.stem for path in JOB_FILES] == [
        "between_graph",
        "between_graph_sync",
        "in_graph",
        "multi_worker_mirrored",
        "parameter_server",
        "single",
    ]


@pytest.mark.parametrize("job_file", JOB_FILES, ids=lambda path: path.stem)
def test_a_job_file_fits_a_machine_with_two_cores(job_file: Path) -> None:
    assert spec_of(job_file).total().cpu <= 2


@pytest.mark.parametrize("job_file", JOB_FILES, ids=lambda path: path.stem)
def test_preflight_finds_nothing_wrong_with_a_job_file(job_file: Path) -> None:
    files = {path.name: path.read_text() for path in (EXAMPLES / "digits").glob("*.py")}
    assert preflight(spec_of(job_file), files) == []
