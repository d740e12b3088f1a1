"""A Jupyter whose notebooks use a registered Spark cluster: which one, how much of it, and what its task is told."""

from __future__ import annotations

import pytest

from apps.administration.spark_uses import cores_held, users_of_cluster
from apps.jobs.models import Reservation
from apps.spark.services import cluster_change
from apps.workbench import services
from apps.workbench.models import WorkbenchSession
from apps.workbench.worker import sessions_sweep
from tests.integration.jobs.test_job_spark_clusters import FACTS, add, launch, spark_world
from tests.integration.jobs.world import task_of
from tests.integration.workbench.conftest import over
from tests.integration.workbench.test_sessions import act, shown, start
from yardmaster.job.spec import Role

__all__ = ["spark_world"]


@pytest.fixture
def world(spark_world):
    """With an engine on the portal's own machine."""
    return spark_world


@pytest.fixture
def farm(world, admin):
    return add(admin)


def begun(me, executors: int | None = 2, cluster: str | None = "gpu-farm", **more):
    return start(me, "jupyter", spark_executors=executors, spark_cluster=cluster, **more)


def problem_of(answer) -> tuple[str, str]:
    (found,) = answer.json()["errors"]
    assert found["message"]
    assert found["remedy"]
    return found["field"], found["code"]


def test_its_task_is_told_the_cluster_with_its_secret_and_holds_its_cores(world, me, farm, settings):
    answer = begun(me)
    assert answer.status_code == 201, answer.json()
    assert (answer.json()["spark_executors"], answer.json()["spark_cluster"]) == (2, "gpu-farm")
    assert "swordfish" not in answer.content.decode()
    world.settle()
    job = WorkbenchSession.objects.get().job
    assert job.spec["spark"] == {"cluster": "gpu-farm", "executors": 2, "cores": 1, "memory": 1 << 30}
    assert "spark_executors" not in job.spec["options"], "none beside it"
    order = task_of(job).get("/api/v1/task/order/", {"role": "worker", "index": 0}).json()
    assert order["spark"] == {**FACTS, "python": "python3", "url": settings.TASK_URL}
    assert Reservation.objects.get(job=job).extended == {"spark/gpu-farm": 2}
    assert cores_held([farm]) == {"gpu-farm": 2}
    assert users_of_cluster(farm) == ["job Jupyter of ada"]


def test_the_next_start_has_the_same_unless_it_says_another(world, ada, farm, jupyter):
    jupyter = services.session_start(user=ada, session=over(jupyter), spark_cluster="gpu-farm")[0]
    assert (jupyter.spark_executors, jupyter.spark_cluster) == (2, "gpu-farm"), "as many as a job has"
    jupyter = services.session_start(user=ada, session=over(jupyter), spark_executors=3)[0]
    assert jupyter.job.spec["spark"]["executors"] == 3
    jupyter = services.session_start(user=ada, session=over(jupyter))[0]
    assert jupyter.job.spec["spark"]["executors"] == 3
    within = {"size": "large", "spark_executors": 1, "spark_cluster": ""}
    jupyter = services.session_start(user=ada, session=over(jupyter), **within)[0]
    assert jupyter.job.spec["options"]["spark_executors"] == 1
    assert jupyter.job.spec["spark"] is None
    jupyter = services.session_start(user=ada, session=over(jupyter), spark_executors=0)[0]
    assert (jupyter.spark_executors, jupyter.spark_cluster) == (0, "")


@pytest.mark.parametrize("limit", ["most_executors", "most_cores", "most_memory", "most_cores_at_once"])
def test_more_than_is_registered_is_refused_in_words(world, me, farm, admin, limit):
    cluster_change(cluster=farm, facts={limit: 2 << 30 if limit == "most_memory" else 2}, actor=admin)
    answer = begun(me, 3)
    field = {"most_executors": "spark_executors", "most_memory": "spark_memory"}.get(limit, "spark_cores")
    assert (answer.status_code, problem_of(answer)) == (400, (field, "spark_limit"))
    assert "of the Spark cluster gpu-farm" in answer.json()["detail"]
    assert begun(me, 2).status_code == 201


def test_only_clusters_that_the_namespace_may_use_are_there_at_a_start_and_a_restart(world, me, farm, admin, bob):
    assert problem_of(begun(me, 1, "other")) == ("spark_cluster", "unknown_spark_cluster")
    assert begun(me).status_code == 201
    cluster_change(cluster=farm, facts={"enabled": False}, actor=admin)
    session = WorkbenchSession.objects.get()
    answer = act(me, session, "restart")
    assert problem_of(answer) == ("spark_cluster", "unknown_spark_cluster")
    assert "leave spark_cluster empty" in answer.json()["errors"][0]["remedy"].lower()
    assert WorkbenchSession.objects.get().again is None
    farm.delete()
    over(session)
    assert problem_of(start(me, "jupyter")) == ("spark_cluster", "unknown_spark_cluster")
    assert start(me, "jupyter", spark_executors=0).status_code == 201


def test_a_restart_whose_cluster_was_removed_meanwhile_says_why_it_does_not_run(world, ada, me, farm, jupyter):
    jupyter = services.session_start(user=ada, session=over(jupyter), spark_cluster="gpu-farm")[0]
    services.session_restart(user=ada, session=jupyter)
    farm.delete()
    over(jupyter)
    sessions_sweep(world.now)
    assert "There is no Spark cluster gpu-farm" in shown(me, jupyter)["message"]


def test_each_executor_has_the_cores_and_the_memory_that_are_asked_for_and_the_next_start_the_same(
    world, ada, me, farm, admin
):
    cluster_change(cluster=farm, facts={"most_cores": 6, "most_memory": 8 << 30}, actor=admin)
    answer = begun(me, spark_cores=3, spark_memory="2Gi").json()
    assert (answer["spark_cores"], answer["spark_memory"]) == (3, 2 << 30)
    world.settle()
    session = WorkbenchSession.objects.get()
    assert session.job.spec["spark"] == {"cluster": "gpu-farm", "executors": 2, "cores": 3, "memory": 2 << 30}
    assert Reservation.objects.get(job=session.job).extended == {"spark/gpu-farm": 6}
    assert cores_held([farm]) == {"gpu-farm": 6}
    session = services.session_start(user=ada, session=over(session))[0]
    assert (session.job.spec["spark"]["cores"], session.job.spec["spark"]["memory"]) == (3, 2 << 30)
    session = services.session_start(user=ada, session=over(session), spark_memory=1 << 30)[0]
    assert (session.job.spec["spark"]["cores"], session.job.spec["spark"]["memory"]) == (3, 1 << 30)
    within = {"size": "large", "spark_executors": 1, "spark_cluster": ""}
    session = services.session_start(user=ada, session=over(session), **within)[0]
    assert (shown(me, session)["spark_cores"], shown(me, session)["spark_memory"]) == (None, None)
    session = services.session_start(user=ada, session=over(session), spark_cluster="gpu-farm")[0]
    assert session.job.spec["spark"] == {"cluster": "gpu-farm", "executors": 1, "cores": 1, "memory": 1 << 30}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"spark_cores": 4}, ("spark_cores", "spark_limit")),
        ({"spark_memory": "5Gi"}, ("spark_memory", "spark_limit")),
        ({"spark_memory": 1 << 20}, ("spark_memory", "out_of_range")),
        ({"spark_memory": "much"}, ("spark_memory", "invalid")),
        ({"spark_cores": 0}, ("spark_cores", "min_value")),
        ({"cluster": "", "spark_cores": 1}, ("spark_cores", "conflict")),
        ({"executors": None, "cluster": None, "spark_memory": "1Gi"}, ("spark_memory", "conflict")),
    ],
)
def test_a_size_of_executors_that_it_may_not_have_is_refused_in_words(world, me, farm, admin, more, expected):
    cluster_change(cluster=farm, facts={"most_cores": 6, "most_memory": 8 << 30}, actor=admin)
    answer = begun(me, **more)
    (found,) = answer.json()["errors"]
    assert (answer.status_code, found["field"], found["code"]) == (400, *expected)
    assert found["message"]


def test_a_restart_keeps_the_size_of_executors(world, ada, me, farm):
    begun(me, spark_cores=2, spark_memory="2Gi")
    world.settle()
    session = WorkbenchSession.objects.get()
    services.session_stop(user=ada, session=session)
    begun(me, executors=None, cluster=None, spark_cores=4)
    assert WorkbenchSession.objects.get().again["spark_cores"] == 4, "its job has yet to end"
    over(session)
    sessions_sweep(world.now)
    found = WorkbenchSession.objects.get().job.spec["spark"]
    assert (found["cores"], found["memory"]) == (4, 2 << 30)


def test_it_waits_in_the_queue_while_others_have_the_cores(world, ada, me, farm, admin):
    cluster_change(cluster=farm, facts={"most_cores_at_once": 3}, actor=admin)
    job = launch(world, ada)
    world.settle()
    assert begun(me).status_code == 201
    world.settle()
    session = WorkbenchSession.objects.get()
    seen = shown(me, session)
    assert seen["state"] == "queued"
    assert "Spark cluster gpu-farm (2 requested, 1 of 3 available)" in seen["message"]
    world.engine.succeed(job, Role.DRIVER)
    world.passes(60)
    assert WorkbenchSession.objects.get().job.phase == "RUNNING"


def test_other_engines_and_other_sessions_have_none(world, me, farm, settings):
    assert problem_of(start(me, "tensorboard", spark_cluster="gpu-farm")) == ("spark_executors", "conflict")
    settings.YARDMASTER_DEFAULT_ENGINE = "elsewhere"
    assert problem_of(begun(me)) == ("spark_cluster", "engine_elsewhere")


def test_the_page_offers_the_clusters_of_the_namespace_and_shows_which_is_used(world, me, farm, admin, bob):
    add(admin, "bobs", everyone=False, namespaces=[bob.personal_namespace])
    page = me.get("/workbench/").content.decode()
    assert '<option value="gpu-farm">on the Spark cluster gpu-farm</option>' in page
    assert "bobs" not in page
    assert '<option value="8">8 executors</option>' in page
    form = {"kind": "jupyter", "size": "small", "spark_executors": "3", "spark_cluster": "gpu-farm"}
    place = me.post("/workbench/start/", form, format="multipart").url
    assert "3 executors, on the Spark cluster <bdi>gpu-farm</bdi>, each with 1 core and 1.0" in _page(me, place)
    over(WorkbenchSession.objects.get())
    me.post("/workbench/start/", {**form, "spark_cores": "2", "spark_memory": "1.5Gi"}, format="multipart")
    assert "each with 2 cores and 1.5" in _page(me, place)
    session = over(WorkbenchSession.objects.get())
    page = _page(me, place)
    assert 'name="spark_cores" value="2"' in page
    assert 'name="spark_memory" value="1.5Gi"' in page
    wrong = me.post(f"/sessions/{session.pk}/start/", {**form, "spark_memory": "much"}, format="multipart")
    assert "such as" in wrong.content.decode()
    within = {**form, "size": "large", "spark_executors": "1", "spark_cluster": "", "spark_cores": "2"}
    me.post("/workbench/start/", {**within, "spark_memory": "1Gi"}, format="multipart")
    session = over(WorkbenchSession.objects.get())
    assert (session.spark_executors, session.spark_cluster) == (1, ""), "the size is for a cluster alone"
    me.post("/workbench/start/", form, format="multipart")
    over(WorkbenchSession.objects.get())
    me.post("/workbench/start/", {"kind": "jupyter", "size": "small"}, format="multipart")
    assert WorkbenchSession.objects.get().spark_cluster == "gpu-farm", "a form without these fields changes neither"


def _page(me, place: str) -> str:
    text: str = me.get(place).content.decode()
    return text


def test_without_clusters_no_place_is_asked_for(world, me):
    page = me.get("/workbench/").content.decode()
    assert 'name="spark_executors"' in page
    assert not [name for name in ("spark_cluster", "spark_cores", "spark_memory") if f'name="{name}"' in page]
