"""A Jupyter with Spark, over the API and the pages: how many executors it may have, and where it may have none."""

from __future__ import annotations

import pytest

from apps.workbench import services, spark
from apps.workbench.models import WorkbenchSession
from tests.integration.workbench.conftest import over
from tests.integration.workbench.test_sessions import start
from yardmaster.job.spec import Resources

GIB = 1 << 30


@pytest.fixture
def has_spark(world, monkeypatch) -> None:
    monkeypatch.setattr(spark, "why_no_spark", lambda engine: "")


def test_its_program_is_told_of_the_executors_and_of_what_the_session_has(has_spark, me):
    answer = start(me, "jupyter", size="large", spark_executors=2)
    assert (answer.status_code, answer.json()["spark_executors"]) == (201, 2), answer.json()
    options = WorkbenchSession.objects.get().job.spec["options"]
    assert (options["spark_executors"], options["cores"], options["memory"]) == (2, 2, 8 * GIB)


def test_the_next_start_has_as_many_unless_it_says_another_number(has_spark, ada, jupyter):
    assert "spark_executors" not in jupyter.job.spec["options"]
    jupyter = services.session_start(user=ada, session=over(jupyter), size="large", spark_executors=1)[0]
    jupyter = services.session_start(user=ada, session=over(jupyter))[0]
    assert jupyter.job.spec["options"]["spark_executors"] == 1
    assert services.session_start(user=ada, session=over(jupyter), spark_executors=0)[0].spark_executors == 0


def test_more_than_its_size_has_cores_or_memory_for_are_refused_in_words(has_spark, me):
    answer = start(me, "jupyter", size="medium", spark_executors=2)
    (problem,) = answer.json()["errors"]
    assert (answer.status_code, problem["field"], problem["code"]) == (400, "spark_executors", "too_many")
    assert "can have 1 Spark executor:" in problem["message"]
    assert problem["remedy"] == "Ask for at most 1, or choose the size large."
    assert "can have no Spark executors" in start(me, "jupyter", size="small", spark_executors=1).json()["detail"]
    assert spark.most_executors(Resources(cpu=8.0, memory=3 * GIB)) == 2


def test_a_restart_with_a_size_that_is_too_small_for_them_changes_nothing(has_spark, me):
    begun = start(me, "jupyter", size="large", spark_executors=2).json()
    answer = me.post(f"/api/v1/sessions/{begun['id']}/restart/", {"size": "small"})
    assert answer.json()["errors"][0]["code"] == "too_many"
    assert WorkbenchSession.objects.get().again is None


def test_where_the_engine_has_no_spark_or_it_is_no_jupyter_it_is_refused(world, me):
    answer = start(me, "jupyter", size="large", spark_executors=1)
    assert (answer.status_code, answer.json()["code"]) == (409, "no_spark")
    assert "0 Spark executors" in answer.json()["remedy"]
    board = start(me, "tensorboard", size="large", spark_executors=1)
    assert board.json()["errors"][0]["code"] == "conflict"


def test_the_form_offers_what_fits_the_largest_size_and_the_page_says_how_many(has_spark, me):
    page = me.get("/workbench/").content.decode()
    assert 'name="spark_executors"' in page
    assert '<option value="2">2 executors</option>' in page
    assert "3 executors" not in page
    form = {"kind": "jupyter", "size": "large", "spark_executors": "2"}
    place = me.post("/workbench/start/", form, format="multipart").url
    assert "2 executors, within this size" in me.get(place).content.decode()


def test_without_spark_no_field_is_offered_and_the_page_says_what_to_install(world, me, monkeypatch):
    assert "spark_executors" not in me.get("/workbench/").content.decode(), "an engine that never brings one"
    monkeypatch.setattr(spark, "can_have_spark", lambda engine: True)
    monkeypatch.setattr(spark, "why_no_spark", lambda engine: "Run make spark.")
    page = me.get("/workbench/").content.decode()
    assert 'name="spark_executors"' not in page
    assert "Notebooks cannot use Spark yet. Run make spark." in page
