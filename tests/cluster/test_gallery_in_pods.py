"""Folders of the gallery in pods: modules, notebooks, commands, TensorFlow 1 mode, and what scripts write where they
run. All jobs run at once; each test looks at one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.cluster.account import Account
from tests.cluster.conftest import portal_on
from tests.cluster.jobs import ended, text_of
from tests.cluster.reach import Cluster
from tests.integration.gallery.folders import launched, yaml_wheel
from tests.real.package_index import package_index
from tests.real.portal import RealPortal
from yardmaster_client import Job, Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400)]

TASK = {"cpu": 0.2, "memory": "1Gi"}
ONE = {"roles": {"worker": TASK}}
PRINTS = "cd training && python -c 'import data; print(data.points(4)[0].shape)' | tee $LOG_DIR/printed.txt"
COMMAND = {"entry_point": None, "arguments": None, "command": PRINTS}
JOBS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "module": ("package", ONE),
    "command": ("package", ONE | COMMAND),
    "notebook": ("notebook", ONE),
    "tf1": ("tf1", {"roles": {"worker": TASK, "ps": TASK}}),
    "relative_outputs": ("relative_outputs", ONE),
    "one_model_dir": ("one_model_dir", ONE),
    "requirements": ("keras_requirements", ONE),
}


@pytest.fixture(scope="module")
def portal(cluster: Cluster, account: Account, own_address: str) -> Iterator[RealPortal]:
    with (
        package_index(yaml_wheel()) as index,
        portal_on(cluster, account, own_address, {"YARDMASTER_PACKAGE_INDEX": index.url}) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def jobs(ada: Yardmaster) -> dict[str, Job]:
    """All of them, launched."""
    return {name: launched(ada, folder, changes) for name, (folder, changes) in JOBS.items()}


def outputs(ada: Yardmaster, job: Job) -> set[str]:
    return {one.path for one in ada.jobs.outputs(job.id)}


def loss_of(ada: Yardmaster, job: Job) -> float:
    (found,) = [line for line in text_of(ada, job).splitlines() if line.startswith("loss ")]
    return float(found.split()[1])


@pytest.mark.long
@pytest.mark.long
def test_a_module_of_a_package_trains(ada: Yardmaster, jobs: dict[str, Job]):
    job = ended(ada, jobs["module"])
    assert loss_of(ada, job) < 0.01
    (kept,) = ada.jobs.model(job.id)["files"]
    assert kept["path"] == "plane.keras"


def test_a_command_is_run_by_the_shell_in_the_folder_of_the_code(ada: Yardmaster, jobs: dict[str, Job]):
    job = ended(ada, jobs["command"])
    assert "(4, 3)" in text_of(ada, job)
    assert "worker-0/printed.txt" in outputs(ada, job)


def test_a_notebook_is_executed_and_kept(ada: Yardmaster, jobs: dict[str, Job]):
    job = ended(ada, jobs["notebook"])
    assert loss_of(ada, job) < 0.01
    assert "worker-0/notebooks/train.ipynb" in outputs(ada, job), "each pod has a log directory of its own"


def test_a_script_of_tensorflow_1_trains_with_a_parameter_server(ada: Yardmaster, jobs: dict[str, Job]):
    job = ended(ada, jobs["tf1"])
    assert loss_of(ada, job) < 0.01
    assert any("tfevents" in path for path in outputs(ada, job))


def test_what_a_script_writes_where_it_runs_is_kept(ada: Yardmaster, jobs: dict[str, Job]):
    job = ended(ada, jobs["relative_outputs"])
    found = outputs(ada, job)
    assert "history.csv" in found
    assert {path.split("/")[1] for path in found if path.startswith("logs/")} >= {"train", "validation", "pictures"}
    assert "saved_model.pb" in {one["path"] for one in ada.jobs.model(job.id)["files"]}
    curves = ada.transport.get(f"jobs/{job.id}/scalars/")
    assert {"logs/train", "logs/validation"} <= {one["run"] for one in curves["results"]}


def test_of_one_model_dir_checkpoints_and_the_model_are_kept(ada: Yardmaster, jobs: dict[str, Job]):
    job = ended(ada, jobs["one_model_dir"])
    assert "export/1/saved_model.pb" in {one["path"] for one in ada.jobs.model(job.id)["files"]}
    (newest, *_) = ada.transport.get(f"jobs/{job.id}/checkpoints/")
    assert newest["step"] == 60


@pytest.mark.long
def test_the_packages_of_a_requirements_file_are_there(ada: Yardmaster, jobs: dict[str, Job]):
    job = ended(ada, jobs["requirements"])
    assert "read by PyYAML" in text_of(ada, job)
    (kept,) = ada.jobs.model(job.id)["files"]
    assert kept["path"] == "waves.keras"
