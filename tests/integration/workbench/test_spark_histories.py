"""A Spark history over the API: which jobs it shows, where it can run, and which files its task is told of."""

from __future__ import annotations

import pytest

from apps.errors import Conflict
from apps.jobs.models import Job
from apps.workbench import services
from apps.workbench.boards import folder_of
from apps.workbench.models import WorkbenchSession
from apps.workbench.proxy.origins import origins
from tests.integration.jobs.world import task_of
from tests.integration.workbench.test_boards import BOARD, output, paths
from tests.integration.workbench.test_sessions import start

ROLES = {
    "driver": {"replicas": 1, "cpu": 0.1, "memory": "1Gi"},
    "executor": {"replicas": 1, "cpu": 0.1, "memory": "1Gi"},
}


@pytest.fixture
def spark_job(world, ada, monkeypatch) -> Job:
    """A Spark job, on an engine that has a Spark for programs of the portal."""
    monkeypatch.setattr(services, "why_no_spark", lambda engine: "")
    return world.launch(ada, strategy="spark", roles=ROLES)


def test_it_shows_the_event_logs_of_spark_jobs_and_nothing_else(spark_job, me):
    answer = start(me, "spark_history", jobs=[str(spark_job.pk)])
    assert answer.status_code == 201, answer.json()
    assert answer.json()["name"] == f"Spark history of {spark_job.name}"
    session = WorkbenchSession.objects.get(pk=answer.json()["id"])
    assert session.job.spec["program"] == "spark_history"
    output(spark_job)
    output(spark_job, "spark-events/app-1", has_events=False)
    output(spark_job, "driver-0/spark-events/app-2", has_events=False)  # of a driver in a pod
    output(spark_job, "logs/spark-events.txt", has_events=False)
    shown = sorted(paths(task_of(session.job).get(BOARD).json()))
    assert shown == [f"{folder_of(spark_job)}/{one}" for one in ("driver-0/spark-events/app-2", "spark-events/app-1")]
    assert start(me, "spark_history", jobs=[str(spark_job.pk)]).json()["id"] == str(session.pk)
    board = start(me, "tensorboard", jobs=[str(spark_job.pk)]).json()
    assert board["id"] != str(session.pk)
    listed = task_of(WorkbenchSession.objects.get(pk=board["id"]).job).get(BOARD).json()
    assert paths(listed) == [f"{folder_of(spark_job)}/events.out.tfevents.1.worker"]


def test_it_needs_spark_jobs(world, ada, me, spark_job):
    other = world.launch(ada)
    none = start(me, "spark_history")
    assert (none.status_code, none.json()["errors"][0]["field"]) == (400, "jobs")
    mixed = start(me, "spark_history", jobs=[str(spark_job.pk), str(other.pk)])
    assert mixed.json()["errors"][0]["code"] == "no_spark"
    assert not WorkbenchSession.objects.exists()


def test_where_the_engine_has_no_spark_it_is_refused_in_words(world, ada, me):
    job = world.launch(ada, strategy="spark", roles=ROLES)
    answer = start(me, "spark_history", jobs=[str(job.pk)])
    assert (answer.status_code, answer.json()["code"]) == (409, "no_spark")
    assert "has no Spark installation" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("having", "expected"), [({"own", "jobs", "other"}, "own"), ({"jobs", "other"}, "jobs"), ({"other"}, "other")]
)
def test_it_runs_on_the_first_engine_that_has_spark(spark_job, ada, settings, monkeypatch, having, expected):
    engines = dict.fromkeys(("other", "own", "jobs"), settings.YARDMASTER_ENGINES[spark_job.engine])
    settings.YARDMASTER_ENGINES, settings.YARDMASTER_DEFAULT_ENGINE = engines, "own"
    Job.objects.update(engine="jobs")
    monkeypatch.setattr(services, "engines_for", lambda user: list(engines))
    monkeypatch.setattr(services, "why_no_spark", lambda engine: "" if engine in having else "It has none.")
    monkeypatch.setattr(services, "engine_chosen", lambda user, name: name)
    monkeypatch.setattr(services, "_start_showing", lambda kind, jobs, user, namespace, wanted: wanted["engine"])
    wanted = {"user": ada, "namespace": spark_job.namespace, "job_ids": [spark_job.pk]}
    assert services.spark_history_start(**wanted) == expected


def test_it_needs_an_origin_of_its_own(spark_job, ada, settings):
    settings.YARDMASTER_WORKBENCH_ORIGINS = origins("http://10.0.0.5:8081", "http://10.0.0.5:8080")
    with pytest.raises(Conflict, match="Spark history session needs an origin of its own"):
        services.spark_history_start(user=ada, namespace=spark_job.namespace, job_ids=[spark_job.pk])


def test_the_page_of_a_spark_job_opens_it(spark_job, me):
    page = me.get(f"/jobs/{spark_job.pk}/").content.decode()
    assert "Open Spark history" in page
    form = {"kind": "spark_history", "job": [str(spark_job.pk)], "back": f"/jobs/{spark_job.pk}/"}
    answer = me.post("/workbench/start/", form, format="multipart")
    session = WorkbenchSession.objects.get()
    assert answer.url == f"/sessions/{session.pk}/?open=1"
    assert "Spark history of" in me.get("/workbench/").content.decode()


def test_where_sessions_share_an_origin_its_page_says_so_and_offers_no_button(spark_job, me, settings):
    session = start(me, "spark_history", jobs=[str(spark_job.pk)]).json()["id"]
    settings.YARDMASTER_WORKBENCH_ORIGINS = origins("http://10.0.0.5:8081", "http://10.0.0.5:8080")
    page = me.get(f"/sessions/{session}/").content.decode()
    assert "A Spark history session needs an origin of its own" in page
    assert "session-open" not in page
    assert "session-start" not in page
