"""The job files of the reviews are valid specifications, from the preparation to the linear model."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.real.reviews import EXAMPLE
from yardmaster.code.preflight import preflight
from yardmaster.ids import new_id
from yardmaster.job.spec import Strategy, TrainingSpec
from yardmaster.job.spec_json import spec_from_json

JOB_FILES = sorted(EXAMPLE.glob("*.yaml"))
SCRIPTS = {path.name: path.read_text() for path in EXAMPLE.glob("*.py")}


def spec_of(job_file: Path) -> TrainingSpec:
    """The spec of a job file, its names replaced by ids as the command line does."""
    job = yaml.safe_load(job_file.read_text())
    if "code" in job:
        assert job.pop("code") == "reviews"
        job["code"] = str(new_id())
    assert [one["dataset"] for one in job.pop("inputs")] == ["reviews-raw" if job.get("program") else "reviews"]
    return spec_from_json(job | {"inputs": [{"dataset_version": str(new_id())}]})


def test_there_is_a_job_file_for_each_step() -> None:
    assert [path.stem for path in JOB_FILES] == ["baseline", "between_graph", "prepare", "single"]


@pytest.mark.parametrize("job_file", JOB_FILES, ids=lambda path: path.stem)
def test_a_job_file_of_the_reviews_fits_a_machine_with_two_cores(job_file: Path) -> None:
    assert spec_of(job_file).total().cpu <= 2


@pytest.mark.parametrize("job_file", [one for one in JOB_FILES if one.stem != "prepare"], ids=lambda path: path.stem)
def test_preflight_finds_nothing_wrong_with_the_reviews(job_file: Path) -> None:
    assert preflight(spec_of(job_file), SCRIPTS) == []


def test_the_preparation_publishes_what_the_training_reads() -> None:
    preparation = spec_of(EXAMPLE / "prepare.yaml")
    assert preparation.strategy is Strategy.BATCH
    assert preparation.program == "prepare"
    assert preparation.publishes is not None
    assert preparation.publishes.dataset == "reviews"
