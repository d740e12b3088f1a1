"""On which machine a Jupyter starts: where its files are, and nowhere else while they are there."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.contract.engine_harness import ACCESS, new_key
from tests.fakes.machines import Park
from yardmaster.engines.base import KeepsHomes
from yardmaster.engines.hosts.environment import TASKS, WORKBENCH, Environments
from yardmaster.errors import SpecRejected, Unavailable
from yardmaster.ids import JobKey, new_id
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec

OWNER = new_id()


def jupyter(cpu: float = 0.3, retries: int = 0) -> TrainingSpec:
    roles = {Role.WORKER: RoleSpec(1, Resources(cpu=cpu, memory=1 << 28))}
    options = {"session": str(new_id()), "owner": str(OWNER)}
    return TrainingSpec("s", Strategy.SERVICE, roles, None, "", program=JUPYTER, options=options, retries=retries)


def spark_job(executors: int, **changes: object) -> TrainingSpec:
    small = Resources(cpu=0.3, memory=1 << 28)
    roles = {Role.DRIVER: RoleSpec(1, small), Role.EXECUTOR: RoleSpec(executors, small)}
    return TrainingSpec("s", Strategy.SPARK, roles, new_id(), "main.py", **changes)  # type: ignore[arg-type]


@pytest.fixture
def park(tmp_path: Path) -> Park:
    made = Park(tmp_path, lost_after=300.0)
    made.engine.capacity()
    return made


def machine_of(park: Park, key: JobKey) -> str:
    return next(name for name, one in park.machines.items() if key.name in one.orders)


def started(park: Park, namespace: uuid.UUID) -> tuple[JobKey, str]:
    key = JobKey(namespace, new_id(), 1)
    park.engine.submit(jupyter(), key, ACCESS)
    return key, machine_of(park, key)


def test_it_is_started_again_where_its_files_are_although_others_have_more_space(park: Park):
    assert isinstance(park.engine, KeepsHomes)
    namespace = new_id()
    key, machine = started(park, namespace)
    assert park.machines[machine].kept == [False]
    park.engine.clean_up(key)
    park.machines["a" if machine != "a" else "b"].answers["capacity"] = lambda: {
        "total": {"cpu": 0.31, "memory": 8 << 30, "gpus": 0},
        "held": [], "promised": {"cpu": 0, "memory": 0, "gpus": 0}, "environment": "",
    }  # fmt: skip
    assert started(park, namespace)[1] == machine, "the fuller one would have been chosen"
    assert park.machines[machine].kept == [False, True]


def test_a_machine_that_is_away_or_off_the_list_is_named_and_no_empty_home_is_made_elsewhere(park: Park):
    namespace = new_id()
    key, machine = started(park, namespace)
    park.engine.clean_up(key)
    park.machines[machine].is_silent = True
    with pytest.raises(Unavailable, match=f"files of this Jupyter are on the machine {machine}, which is away"):
        started(park, namespace)
    with pytest.raises(Unavailable):
        park.engine.home_use(namespace, OWNER)
    park.list_all(machine)
    for ask in (park.engine.home_use, park.engine.remove_home):
        with pytest.raises(Unavailable, match="not in the list any more") as told:
            ask(namespace, OWNER)
        assert told.value.remedy.endswith(f"machines --forget {machine}")
    assert park.engine.homes.forget_machine(machine) == 1
    assert started(park, namespace)[1] != machine


def test_a_jupyter_of_a_lost_machine_waits_for_it(park: Park, monkeypatch: pytest.MonkeyPatch):
    key = new_key()
    park.engine.submit(jupyter(retries=3), key, ACCESS)
    machine = machine_of(park, key)
    park.engine.observe([key])
    park.machines[machine].is_silent = True
    monkeypatch.setattr(park.engine.records, "away_since", lambda name: time.time() - 1000.0)
    assert park.engine.observe([key])[key].to_restart
    with pytest.raises(Unavailable, match=f"are on the machine {machine}, which is away"):
        park.engine.restart(key)
    park.machines[machine].is_silent = False
    assert not park.engine.observe([key])[key].to_restart
    assert park.orders() == {machine: {"worker-0"}}


def test_files_are_found_although_the_portal_has_no_note_of_them(park: Park):
    park.machines["c"].homes.add(str(OWNER))
    assert started(park, new_id())[1] == "c"


def test_admission_is_told_which_machine_has_the_files_also_of_one_that_is_away(park: Park):
    namespace, other = new_id(), new_id()
    _, machine = started(park, namespace)
    assert park.engine.capacity().homes == {(namespace, OWNER): machine}
    park.machines[machine].is_silent = True
    found = park.engine.capacity()
    assert found.homes == {(namespace, OWNER): machine}
    assert found.notebooks == frozenset("abc"), "as was heard last"
    park.machines[machine].is_silent = False
    park.machines[machine].homes.clear()
    park.machines["c"].homes.add(str(OWNER))
    park.machines["c"].answers["capacity"] = dict  # it answers nonsense, so that the start fails
    with pytest.raises(Unavailable):
        started(park, other)
    assert park.engine.capacity().homes[other, OWNER] == "c", "found there, and noted for the next time"


def test_files_are_measured_and_removed_where_they_are(park: Park):
    namespace = new_id()
    assert park.engine.home_use(namespace, OWNER).size == 0
    key, machine = started(park, namespace)
    park.engine.clean_up(key)
    assert park.engine.home_use(namespace, OWNER).size == 7
    park.machines[machine].answers["home_use"] = lambda: {"size": 10**30, "is_whole": True}
    assert park.engine.home_use(namespace, OWNER).size == 1 << 50
    park.machines[machine].answers["home_use"] = lambda: {"size": "much"}
    with pytest.raises(Unavailable, match="sent an invalid answer"):
        park.engine.home_use(namespace, OWNER)
    assert park.engine.remove_home(namespace, OWNER)
    assert not park.machines[machine].homes
    assert park.engine.remove_home(namespace, OWNER), "there is none any more"


def test_without_jupyterlab_on_any_machine_it_is_refused_with_the_command(park: Park):
    for name in park.machines:
        park.engine.records.note_machine(name, workbench=False)
    refusal = park.engine.refusal(jupyter())
    assert refusal is not None
    assert refusal.code == "no_workbench"
    assert "machines --install --workbench" in refusal.remedy
    with pytest.raises(SpecRejected):
        park.engine.submit(jupyter(), new_key(), ACCESS)


def test_only_machines_with_jupyterlab_take_it(park: Park):
    park.engine._surveyor._needs_environment = True
    for name, one in park.machines.items():
        answer = {**one.do("capacity", {}), "environment": "digest", "workbench": "digest" if name == "b" else ""}
        one.answers["capacity"] = partial(dict, answer)
    park.engine.capacity()
    assert started(park, new_id())[1] == "b"
    assert [one.has_workbench for one in park.engine.survey()] == [False, True, False]


def test_only_machines_with_spark_take_the_tasks_of_a_spark_job_that_brings_none(park: Park):
    park.engine._surveyor._needs_environment = True
    for name, one in park.machines.items():
        spark = "/folder" if name == "b" else ""
        answer = {**one.do("capacity", {}), "environment": "digest", "spark": spark, "java": name != "c"}
        one.answers["capacity"] = partial(dict, answer)
    park.engine.capacity()
    assert [one.has_spark for one in park.engine.survey()] == [False, True, False]
    key = new_key()
    park.engine.submit(spark_job(1, requirements=()), key, ACCESS)
    assert park.orders() == {"b": {"driver-0", "executor-0"}}
    with pytest.raises(Unavailable, match="Spark is not installed on a, c, which take no task of this job") as told:
        park.engine.submit(spark_job(4, requirements=()), new_key(), ACCESS)
    assert "machines --install --spark" in told.value.remedy
    park.engine.clean_up(key)
    own = new_key()
    park.engine.submit(spark_job(3, requirements=("pyspark",)), own, ACCESS)
    assert park.orders().keys() == {"a", "b"}, "c has no Java for the job's own Spark"


def test_a_notebook_with_executors_starts_where_both_are_and_where_its_files_are_it_says_what_lacks(park: Park):
    park.engine._surveyor._needs_environment = True
    for name, one in park.machines.items():
        has = {"spark": "/folder" if name != "c" else "", "workbench": "digest" if name != "a" else ""}
        answer = {**one.do("capacity", {}), "environment": "digest", "java": True, **has}
        one.answers["capacity"] = partial(dict, answer)
    capacity = park.engine.capacity()
    assert (capacity.notebooks, capacity.spark, capacity.java) == ({"b", "c"}, {"a", "b"}, frozenset("abc"))
    with_spark = replace(jupyter(), requirements=(), options={**jupyter().options, "spark_executors": 1})
    key = new_key()
    park.engine.submit(with_spark, key, ACCESS)
    assert machine_of(park, key) == "b"
    park.engine.clean_up(key)
    park.machines["b"].homes.clear()
    assert park.engine.remove_home(key.namespace_id, OWNER)
    park.machines["c"].homes.add(str(OWNER))
    again = JobKey(key.namespace_id, new_id(), 1)
    with pytest.raises(Unavailable, match="None of the machines that may run it has Spark: c"):
        park.engine.submit(with_spark, again, ACCESS)


def test_environments_of_tasks_and_of_notebooks_do_not_take_each_others_place(tmp_path: Path):
    tasks, notebooks = Environments(tmp_path), Environments(tmp_path, WORKBENCH)
    for one, digest in ((tasks, "one"), (notebooks, "two")):
        one.python(digest).parent.mkdir(parents=True)
        one.python(digest).touch()
        one.install(digest, "one" if one is notebooks else "")
    assert (tasks.current(), notebooks.current(), Environments(tmp_path, TASKS).current()) == ("one", "two", "one")
    with pytest.raises(Unavailable, match="on which this one is based, is missing"):
        notebooks.install("three", "none")
    with pytest.raises(Unavailable):
        Environments(tmp_path, "../other")
