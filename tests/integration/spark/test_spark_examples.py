"""The examples in `examples/spark`, launched as their pages say."""

from __future__ import annotations

import re
import subprocess

import pytest
import yaml

from portal.env import task_python
from tests.integration.spark.spark_jobs import SHORT_LIVED, log_of
from tests.real.scene import ROOT, Scene
from yardmaster_client import Job
from yardmaster_client.names import resolve_spec

pytestmark = [pytest.mark.spark, pytest.mark.tensorflow, pytest.mark.slow, pytest.mark.timeout(600)]
FOLDER = ROOT / "examples/spark"


@pytest.fixture(scope="module")
def digits(one: Scene, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The data, under the name that the job file has."""
    folder = tmp_path_factory.mktemp("digits")
    prepare = ROOT / "examples/digits/prepare.py"
    subprocess.run([task_python(), str(prepare), str(folder)], check=True, stdout=subprocess.DEVNULL)
    one.client.datasets.put("digits", [folder])


def run(one: Scene, name: str) -> tuple[Job, str]:
    """The job of this file when it has ended, and the log of its driver."""
    spec = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    for role in spec["roles"].values():
        role["cpu"] = 0.3
    files = {path.name: path.read_text() for path in FOLDER.glob("*.py")}
    spec["code"] = one.put_code(SHORT_LIVED | files, "spark")
    job = one.ended(one.client.jobs.launch(resolve_spec(one.client, spec)), 500)
    driver = log_of(one, job, "driver")
    assert job.phase == "SUCCEEDED", driver[-3000:]
    return one.client.jobs.get(job.id), driver


def accuracy_in(text: str) -> float:
    found = re.search(r"test accuracy ([01]\.\d+)", text)
    return float(found[1]) if found else 0.0


@pytest.mark.usefixtures("digits")
def test_digits_fed_from_an_rdd(one: Scene) -> None:
    job, driver = run(one, "digits_rdd")
    assert accuracy_in(driver) > 0.9
    assert job.model, "the export of the chief's executor is the job's model"


@pytest.mark.usefixtures("digits")
@pytest.mark.long
def test_digits_read_from_files_by_each_worker(one: Scene) -> None:
    job, driver = run(one, "digits_files")
    assert accuracy_in(driver) > 0.9
    assert job.model, "the export of the chief's executor is the job's model"
    read = [re.findall(r"train-\d+-of-\d+", log_of(one, job, "executor", index)) for index in range(2)]
    assert sorted(read[0] + read[1]) == [f"train-{index:05d}-of-00008" for index in range(8)], "each shard once"
    assert {len(files) for files in read} == {4}
    (progress,) = [task["progress"] for task in one.client.jobs.tasks(job.id) if task["role"] == "driver"]
    assert progress["step"] == progress["total"] > 0, "the driver says of how many, and the event files how far"


@pytest.mark.long
def test_an_estimator_is_fitted_to_a_dataframe_and_its_model_predicts_for_another(one: Scene) -> None:
    _, driver = run(one, "events_train")
    assert accuracy_in(driver) > 0.85
    predicted, driver = run(one, "events_predict")
    assert "1000 predictions" in driver
    published = one.client.jobs.published(predicted.id, wait=True)
    assert published is not None
    assert (published["state"], published["dataset"], published["number"]) == ("published", "spark-predictions", 1)
    files = list(one.client.datasets.files(published["version"]))
    assert [file.path for file in files] == ["predictions.jsonl"]
