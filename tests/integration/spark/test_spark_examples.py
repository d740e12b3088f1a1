"""The examples in `examples/spark`, launched as their pages say."""

from __future__ import annotations

import re
import subprocess

import pytest
import yaml

from portal.env import task_python
from tests.integration.spark.spark_jobs import log_of
from tests.real.scene import ROOT, Scene

pytestmark = [pytest.mark.spark, pytest.mark.tensorflow, pytest.mark.slow, pytest.mark.timeout(600)]
FOLDER = ROOT / "examples/spark"


@pytest.fixture(scope="module")
def digits(one: Scene, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A version of the data."""
    folder = tmp_path_factory.mktemp("digits")
    prepare = ROOT / "examples/digits/prepare.py"
    subprocess.run([task_python(), str(prepare), str(folder)], check=True, stdout=subprocess.DEVNULL)
    latest = one.client.datasets.put("digits", [folder]).latest
    assert latest is not None
    return latest.id


def test_digits_fed_from_an_rdd(one: Scene, digits: str) -> None:
    spec = yaml.safe_load((FOLDER / "digits_rdd.yaml").read_text())
    for role in spec["roles"].values():
        role["cpu"] = 0.3
    spec["code"] = one.put_code({path.name: path.read_text() for path in FOLDER.glob("*.py")}, "spark")
    job = one.ended(one.client.jobs.launch(spec | {"inputs": [{"dataset_version": digits}]}), 500)
    driver = log_of(one, job, "driver")
    assert job.phase == "SUCCEEDED", driver[-3000:]
    found = re.search(r"test accuracy ([01]\.\d+)", driver)
    assert found
    assert float(found[1]) > 0.9
    assert one.client.jobs.get(job.id).model is not None, "the export of the chief's executor is the job's model"
