"""The job files in `examples/spark` are valid specifications of code that passes preflight."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.integration.examples.by_hand import EXAMPLES
from yardmaster.code.preflight import preflight
from yardmaster.ids import new_id
from yardmaster.job.spec_json import spec_from_json

FOLDER = EXAMPLES / "spark"
JOB_FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("job_file", JOB_FILES, ids=lambda path: path.stem)
def test_a_spark_job_file_is_valid_and_fits_two_cores(job_file: Path) -> None:
    job = yaml.safe_load(job_file.read_text())
    assert job["code"] == "spark"
    kinds = {"dataset": "dataset_version", "model": "model_version"}
    inputs = [{kinds[kind]: str(new_id()) for kind in one} for one in job.pop("inputs", [])]
    spec = spec_from_json(job | {"code": str(new_id()), "inputs": inputs})
    assert spec.total().cpu <= 2
    files = {path.name: path.read_text() for path in FOLDER.glob("*.py")}
    assert preflight(spec, files) == []
