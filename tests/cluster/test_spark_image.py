"""Spark in pods of the image that the operator names for it: a job that lists no packages, its history as a browser
opens it, and a notebook with executors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.cluster.account import Account
from tests.cluster.conftest import portal_on
from tests.cluster.jobs import cleaned_up, launch, pod_of, text_of
from tests.cluster.notebooks import JupyterAtOrigin
from tests.cluster.reach import Cluster, wait_for
from tests.real.opened import Opened, opened, signed_in
from tests.real.portal import RealPortal
from yardmaster_client import Job, Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(2400)]

BUILT_WITHIN = 1500.0
STARTS = 300.0
SCRIPT = """
import os, socket
import tensorflowonspark
from pyspark.sql import SparkSession

def where(number):
    return socket.gethostname()

spark = SparkSession.builder.appName("pods").getOrCreate()
print("rows", spark.range(1000).where("id % 3 = 0").count(), flush=True)
found = set(spark.sparkContext.parallelize(range(10), 4).map(where).collect())
print("elsewhere", socket.gethostname() not in found, len(found), flush=True)
spark.stop()
"""
ROLES = {
    "driver": {"replicas": 1, "cpu": 0.3, "memory": "1536Mi"},
    "executor": {"replicas": 2, "cpu": 0.3, "memory": "1Gi"},
}
NOTEBOOK = "Starter notebooks/4-spark-sql-and-mllib.ipynb"


@pytest.fixture(scope="module")
def spark_image(cluster: Cluster) -> str:
    """Built where it is wanted alone: it takes minutes, and is kept."""
    if named := os.environ.get("YARDMASTER_TEST_SPARK_IMAGE"):
        return named
    if not cluster.is_developed:
        pytest.skip("nothing says which image has Spark: set YARDMASTER_TEST_SPARK_IMAGE")
    cluster.devcluster("images", "spark", seconds=BUILT_WITHIN)
    return "localhost/yardmaster/spark:dev"


@pytest.fixture(scope="module")
def spark_portal(cluster: Cluster, account: Account, own_address: str, spark_image: str) -> Iterator[RealPortal]:
    image = {"YARDMASTER_KUBERNETES_SPARK_IMAGE": spark_image}
    with portal_on(cluster, account, own_address, image, host="0.0.0.0", home_size="64Mi") as running:
        yield running


@pytest.fixture(scope="module")
def erin(spark_portal: RealPortal) -> Iterator[Yardmaster]:
    with Yardmaster(spark_portal.url, spark_portal.token_of("erin")) as client:
        yield client


def image_of(cluster: Cluster, job: Job, role: str = "worker") -> str:
    place, name = pod_of(cluster, job, role, 0)
    return str(cluster.get("pod", name, place)["spec"]["containers"][0]["image"])


@pytest.fixture(scope="module")
def job(cluster: Cluster, erin: Yardmaster, spark_image: str) -> Job:
    """A Spark job that has ended, and names no packages."""
    launched = launch(erin, SCRIPT, strategy="spark", roles=ROLES)
    assert image_of(cluster, launched, "executor") == spark_image
    ended = erin.jobs.wait(launched.id, timeout=STARTS)
    driver = text_of(erin, ended, "driver")
    assert ended.phase == "SUCCEEDED", (ended.reason, ended.message, driver[-4000:], text_of(erin, ended, "executor"))
    assert "rows 334" in driver
    assert "elsewhere True 2" in driver
    return ended


def started(portal: RealPortal, client: Yardmaster, wanted: dict[str, Any]) -> tuple[dict[str, Any], Opened]:
    """A session that is ready, and where a browser has it."""
    made = client.transport.post("sessions/", wanted)

    def is_ready() -> dict[str, Any] | None:
        found: dict[str, Any] = client.transport.get(f"sessions/{made['id']}/")
        said = text_of(client, client.jobs.get(found["job"])) if found["state"] == "failed" else ""
        assert found["state"] != "failed", (found, said)
        return found if found["state"] == "ready" else None

    found = wait_for(f"the {made['kind']}", is_ready, STARTS)
    return found, opened(portal.url, signed_in(portal.url, "erin"), made["id"])


def test_the_history_of_a_job_without_packages_is_shown(
    cluster: Cluster, spark_portal: RealPortal, erin: Yardmaster, job: Job, spark_image: str
):
    cleaned_up(erin, job)
    wanted = {"kind": "spark_history", "jobs": [job.id], "size": "small"}
    session, place = started(spark_portal, erin, wanted)
    assert image_of(cluster, erin.jobs.get(session["job"])) == spark_image
    with place.client() as browser:

        def applications() -> list[dict[str, Any]]:
            answer = browser.get("api/v1/applications")
            return list(answer.json()) if answer.status_code == 200 else []

        (found,) = wait_for("the application", applications)
        assert (found["name"], found["attempts"][0]["completed"]) == ("pods", True)
        assert len(browser.get(f"api/v1/applications/{found['id']}/allexecutors").json()) == 3
        page = browser.get(f"history/{found['id']}/jobs/").raise_for_status().text
        assert "Completed Jobs" in page
        assert f"{place.prefix}history/{found['id']}/stages/" in page
    erin.transport.post(f"sessions/{session['id']}/stop/", {})


def test_a_notebook_drives_executors_within_its_session(
    cluster: Cluster, spark_portal: RealPortal, erin: Yardmaster, spark_image: str
):
    wanted = {"kind": "jupyter", "size": "medium", "spark_executors": 1}
    session, place = started(spark_portal, erin, wanted)
    assert image_of(cluster, erin.jobs.get(session["job"])) == spark_image
    with closing(JupyterAtOrigin(place)) as jupyter:
        said = "".join(jupyter.run_notebook(NOTEBOOK))
    assert "spark://127.0.0.1:" in said
    for named in ("MLlib:", "Keras:"):
        (score,) = [float(line.split()[-1]) for line in said.splitlines() if line.startswith(named)]
        assert score > 0.8
    erin.transport.post(f"sessions/{session['id']}/stop/", {})
