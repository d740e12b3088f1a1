"""A driver in a pod, whose executors are those of a registered Spark cluster outside of this cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.account import Account
from tests.cluster.conftest import portal_on
from tests.cluster.jobs import launch, text_of
from tests.cluster.reach import Cluster
from tests.cluster.test_spark_image import STARTS, spark_image  # noqa: F401
from tests.real.portal import RealPortal
from tests.real.spark_cluster import standalone
from yardmaster_client import Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

SECRET = "swordfish-of-the-farm"
SCRIPT = """
import os, socket
from pyspark.sql import SparkSession

def where(number):
    has_token = len(os.environ["YARDMASTER_TASK_TOKEN"]) > 20 and os.environ["YARDMASTER_TASK_URL"].startswith("http")
    return socket.gethostname(), number, has_token

spark = SparkSession.builder.appName("from-a-pod").getOrCreate()
found = spark.sparkContext.parallelize(range(10), 4).map(where).collect()
print("sum", sum(one[1] for one in found), socket.gethostname() not in {one[0] for one in found}, end=" ")
print(all(one[2] for one in found), flush=True)
own = socket.gethostbyname(socket.gethostname())
print("announces its own address", spark.sparkContext.getConf().get("spark.driver.host") == own, flush=True)
"""
ROLES = {"driver": {"replicas": 1, "cpu": 0.3, "memory": "1Gi"}}
WANTED = {"cluster": "farm", "executors": 2, "cores": 1, "memory": "512Mi"}


@pytest.fixture(scope="module")
def portal(cluster: Cluster, account: Account, own_address: str, spark_image: str) -> Iterator[RealPortal]:  # noqa: F811
    image = {"YARDMASTER_KUBERNETES_SPARK_IMAGE": spark_image}
    with portal_on(cluster, account, own_address, image, spark_cidrs=[f"{own_address}/32"]) as running:
        yield running


def test_executors_outside_of_the_cluster_reach_a_driver_in_a_pod(
    portal: RealPortal, ada: Yardmaster, own_address: str, tmp_path: Path
):
    with standalone(tmp_path / "farm", SECRET, host=own_address) as farm:
        # What is registered is the address of the portal's machine: no pod may announce it.
        with Yardmaster(portal.url, portal.token_of("admin", is_staff=True)) as admin:
            admin.transport.post("spark-clusters/", {"name": "farm", **farm.facts(secret=SECRET)})
        job = launch(ada, SCRIPT, strategy="spark", roles=ROLES, spark=WANTED)
        job = ada.jobs.wait(job.id, timeout=STARTS)
        driver = text_of(ada, job, "driver")
        assert job.phase == "SUCCEEDED", (job.reason, job.message, driver[-4000:], farm.logs[-3000:])
    assert f"sum {sum(range(10))} True True" in driver
    assert "announces its own address True" in driver
    assert SECRET not in driver
