"""Jobs on registered Spark clusters: who may name one, its limits, waiting for its cores, what the driver is told."""

from __future__ import annotations

from typing import Any

import pytest

from apps.audit.models import AuditEvent
from apps.jobs.engines.configured import engine_named
from apps.jobs.explanations.why import why
from apps.jobs.models import Job, Reservation
from apps.namespaces.models import Namespace, Quota
from apps.secrets.services import secrets_reseal
from apps.spark.models import SparkCluster
from apps.spark.services import cluster_change, cluster_create
from tests.integration.jobs.conftest import stores
from tests.integration.jobs.world import StagedEngine, World, refuses_transactions, task_of
from yardmaster.engines.drivers import DriverAddress
from yardmaster.errors import SpecRejected
from yardmaster.job.spec import Role
from yardmaster.job.spec_stored import stored_spec

__all__ = ["stores"]

pytestmark = pytest.mark.django_db
FACTS = {"master": "spark://10.0.0.5:7077", "driver_address": "10.0.0.10", "secret": "swordfish-of-the-cluster"}
ROLES = {"driver": {"cpu": 0.5}}


class SparkEngine(StagedEngine):
    """One on the portal's own machine."""

    driver_address: DriverAddress | None = DriverAddress.REGISTERED

    def has_own_spark(self) -> bool:
        return True

    def missing_for_spark(self) -> str:
        return ""


@pytest.fixture
def spark_world(db, settings, stores) -> World:
    settings.YARDMASTER_ENGINES = {
        "staged": {"class": f"{__name__}.SparkEngine", "options": {}},
        "elsewhere": {"class": "tests.integration.jobs.world.StagedEngine", "options": {}},
    }
    settings.YARDMASTER_DEFAULT_ENGINE = "staged"
    engine = engine_named("staged")
    engine.before_verb = refuses_transactions()
    return World(engine)


def add(actor, name: str = "gpu-farm", *, namespaces: Any = (), **facts: Any) -> SparkCluster:
    return cluster_create(name=name, facts=FACTS | facts, namespaces=namespaces, actor=actor)


def launch(world: World, user, name: str = "gpu-farm", executors: int = 2, cores: int = 1, **changes: Any) -> Job:
    asked = {"cluster": name, "executors": executors, "cores": cores, "memory": "1Gi"}
    return world.launch(user, strategy="spark", roles=ROLES, spark=asked, **changes)


def refused(world: World, user, **changes: Any) -> dict[str, str]:
    """The codes by field."""
    with pytest.raises(SpecRejected) as found:
        launch(world, user, **changes)
    assert all(one.message and one.remedy for one in found.value.problems)
    return {one.field: one.code for one in found.value.problems}


def test_only_clusters_that_the_namespace_may_use_are_known(spark_world, ada, bob, admin, settings):
    assert refused(spark_world, ada) == {"spark.cluster": "unknown_spark_cluster"}
    add(admin, everyone=False, namespaces=[Namespace.objects.get(owner=bob)])
    add(admin, "off", enabled=False)
    assert refused(spark_world, ada) == {"spark.cluster": "unknown_spark_cluster"}
    assert refused(spark_world, ada, name="off") == {"spark.cluster": "unknown_spark_cluster"}
    assert launch(spark_world, bob).spec["spark"]["cluster"] == "gpu-farm"
    settings.YARDMASTER_DEFAULT_ENGINE = "elsewhere"
    assert refused(spark_world, bob) == {"spark.cluster": "engine_elsewhere"}


def test_what_a_job_may_have_is_bounded(spark_world, ada, admin):
    cluster = add(admin, most_executors=4, most_cores=6, most_memory=6 << 30)
    assert refused(spark_world, ada, executors=5) == {"spark.executors": "spark_limit"}
    assert refused(spark_world, ada, executors=4, cores=2) == {"spark.cores": "spark_limit"}
    cluster_change(cluster=cluster, facts={"most_memory": 1 << 30}, actor=admin)
    assert refused(spark_world, ada) == {"spark.memory": "spark_limit"}
    cluster_change(cluster=cluster, facts={"most_memory": None, "most_cores_at_once": 1}, actor=admin)
    assert refused(spark_world, ada) == {"spark.cores": "spark_limit"}


def test_a_job_waits_while_others_have_the_cores_of_its_cluster(spark_world, ada, admin):
    Quota.objects.filter(namespace__owner=ada).update(gpus=0)  # whatever the cluster is called
    add(admin, most_cores_at_once=3)
    first, second, other = launch(spark_world, ada), launch(spark_world, ada), spark_world.launch(ada)
    spark_world.settle()
    assert [spark_world.again(one).phase for one in (first, second, other)] == ["RUNNING", "QUEUED", "RUNNING"]
    held = Reservation.objects.get(job=first)
    assert (held.role, held.extended) == ("driver", {"spark/gpu-farm": 2})
    told = why(ada, spark_world.again(second), (), spark_world.now)
    assert told.reason == "WaitingForCapacity"
    words = "Not enough cores for all jobs together: Spark cluster gpu-farm (2 requested, 1 of 3 available)."
    assert told.message.startswith(words)
    assert [one["name"] for one in told.holders] == [first.name]
    spark_world.engine.succeed(first, Role.DRIVER)
    spark_world.passes(60)
    assert [spark_world.again(one).phase for one in (first, second)] == ["SUCCEEDED", "RUNNING"]


def test_cores_that_nobody_bounds_are_waited_for_by_none(spark_world, ada, admin):
    add(admin)
    jobs = [launch(spark_world, ada, executors=50) for _ in range(3)]
    spark_world.settle()
    assert {spark_world.again(one).phase for one in jobs} == {"RUNNING"}


def test_the_driver_alone_is_told_the_secret(spark_world, ada, admin, settings):
    add(admin, python="/opt/python3.11")
    job = launch(spark_world, ada)
    spark_world.settle()
    job = spark_world.again(job)
    assert stored_spec(job.spec).spark is not None
    order = task_of(job, job.attempt).get("/api/v1/task/order/", {"role": "driver", "index": 0}).json()
    expected = {**FACTS, "python": "/opt/python3.11", "url": settings.TASK_URL}
    assert order["spark"] == expected
    assert order["spec"]["spark"] == {"cluster": "gpu-farm", "executors": 2, "cores": 1, "memory": 1 << 30}
    rows = [*Job.objects.values_list("spec", flat=True), *AuditEvent.objects.values_list("facts", flat=True)]
    assert "swordfish" not in str(rows)
    settings.YARDMASTER_EARLIER_SECRET_KEYS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-key-of-the-portal-0123456789-0123456789"
    assert secrets_reseal() == (1, [])
    settings.YARDMASTER_EARLIER_SECRET_KEYS = []
    order = task_of(job, job.attempt).get("/api/v1/task/order/", {"role": "driver", "index": 0}).json()
    assert order["spark"] == expected


@pytest.mark.parametrize("change", ["removed", "not_allowed", "off"])
def test_a_secret_is_sent_only_while_the_namespace_may_use_its_cluster(spark_world, ada, bob, admin, change):
    cluster = add(admin)
    job = launch(spark_world, ada)
    spark_world.settle()
    if change == "removed":
        cluster.delete()
    elif change == "off":
        cluster_change(cluster=cluster, actor=admin, facts={"enabled": False})
    else:
        others = [Namespace.objects.get(owner=bob)]
        cluster_change(cluster=cluster, actor=admin, facts={"everyone": False}, namespaces=others)
    answer = task_of(spark_world.again(job)).get("/api/v1/task/order/", {"role": "driver", "index": 0})
    if change == "off":  # that is for new jobs
        assert answer.json()["spark"]["secret"] == FACTS["secret"]
        return
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_spark_cluster")
    assert "swordfish" not in answer.content.decode()


def test_where_tasks_have_addresses_of_their_own_the_registered_one_is_not_told(spark_world, ada, admin):
    add(admin)
    spark_world.engine.driver_address = DriverAddress.OWN
    job = launch(spark_world, ada)
    spark_world.settle()
    order = task_of(spark_world.again(job)).get("/api/v1/task/order/", {"role": "driver", "index": 0}).json()
    assert order["spark"]["driver_address"] == ""
    assert order["spark"]["secret"] == FACTS["secret"]


def test_an_engine_whose_tasks_executors_do_not_reach_is_named_with_those_that_do(spark_world, ada, admin, settings):
    add(admin)
    settings.YARDMASTER_DEFAULT_ENGINE = "elsewhere"
    with pytest.raises(SpecRejected) as found:
        launch(spark_world, ada)
    (problem,) = found.value.problems
    assert "tasks of the engine elsewhere" in problem.message
    assert problem.remedy.startswith("Choose the engine staged, or remove spark.")


def test_one_file_of_a_version_is_asked_for_alone(spark_world, ada):
    code = spark_world.code_version(ada, {f"{name}.py": "print(1)\n" for name in ("a", "b", "c", "train")})
    job = spark_world.launch(ada, code=str(code.pk), entry_point="train.py")
    spark_world.settle()
    where, which = f"/api/v1/task/versions/{code.pk}/files/", {"role": "worker", "index": 0, "after": "b.p", "most": 1}
    answer = task_of(spark_world.again(job), 1).get(where, which).json()
    assert [one["path"] for one in answer["files"]] == ["b.py"]
    assert answer["next"] == "b.py"
