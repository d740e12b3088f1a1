"""Metrics in the list of jobs: kept as points arrive, shown as columns, sorted and filtered by."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.jobs.models import Job, JobMetric, Reservation
from apps.jobs.state.metrics import metrics_take
from tests.integration.jobs.test_job_labels import ended
from yardmaster.job.metrics import MOST_METRICS

LIST = "/api/v1/jobs/"


@pytest.fixture
def me(ada, signed_in):
    return signed_in(ada)


def points(*values: float | None, tag: str = "loss", run: str = ".") -> list[dict]:
    return [{"run": run, "tag": tag, "step": n, "time": 1.0, "value": value} for n, value in enumerate(values)]


def names(me, **query) -> list[str]:
    answer = me.get(LIST, query)
    assert answer.status_code == 200, answer.json()
    return [one["name"] for one in answer.json()["results"]]


@pytest.fixture
def three(world, ada) -> list[Job]:
    jobs = [world.launch(ada, name=name) for name in ("a", "b", "c")]
    metrics_take(jobs[0], points(0.9, 0.2) + points(0.5, tag="accuracy"))
    metrics_take(jobs[1], points(0.1, 0.6) + points(0.9, tag="accuracy"))
    metrics_take(jobs[2], points(None))
    return jobs


def test_points_keep_the_latest_and_the_extremes_and_a_bound_on_names(world, ada):
    job = world.launch(ada)
    metrics_take(job, points(0.5, 0.2, 0.4) + points(1.0, run="validation"))
    kept = JobMetric.objects.get(job=job, name="loss")
    assert (kept.step, kept.latest, kept.lowest, kept.highest) == (2, 0.4, 0.2, 0.5)
    assert JobMetric.objects.filter(job=job, name="validation/loss").exists()
    metrics_take(job, [one for n in range(80) for one in points(1.0, tag=f"m{n}")])
    assert JobMetric.objects.filter(job=job).count() == MOST_METRICS
    metrics_take(job, points(9.0, 9.0, 9.0, 9.0))
    assert JobMetric.objects.get(job=job, name="loss").latest == 9.0, "one that is there goes on"


def test_another_attempt_from_the_start_forgets_them_and_one_that_resumes_does_not(world, ada, me):
    job = ended(world, ada)
    metrics_take(job, points(0.1))
    assert me.post(f"{LIST}{job.pk}/retry/", {"resume": True}, format="json").status_code == 200
    job.refresh_from_db()
    metrics_take(job, points(0.7))
    kept = JobMetric.objects.get(job=job)
    assert (kept.attempt, kept.latest, kept.lowest) == (2, 0.7, 0.1)
    world.until_running(job)
    world.engine.succeed(job)
    world.until_quiet()
    assert me.post(f"{LIST}{job.pk}/retry/", {"resume": False}, format="json").status_code == 200
    assert not JobMetric.objects.exists()


def test_the_list_is_sorted_by_a_metric_and_jobs_without_it_come_last(three, me):
    assert names(me, ordering="metric:loss") == ["a", "b", "c"]
    assert names(me, ordering="-metric:loss") == ["b", "a", "c"]
    assert names(me, ordering="min:loss") == ["b", "a", "c"]
    assert names(me, ordering="-max:loss") == ["a", "b", "c"]
    assert names(me, ordering="-metric:nothing") == ["c", "b", "a"]


def test_a_sorted_list_is_read_page_by_page_both_ways(three, me):
    seen, query = [], {"ordering": "-metric:loss", "page_size": 1}
    answer = me.get(LIST, query).json()
    while True:
        seen += [one["name"] for one in answer["results"]]
        if not answer["next"]:
            break
        answer = me.get(answer["next"]).json()
    assert seen == ["b", "a", "c"]
    assert [one["name"] for one in me.get(answer["previous"]).json()["results"]] == ["a"]
    wrong = me.get(LIST, {"ordering": "-metric:loss", "cursor": "x" * 23})
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (400, "cursor")


def test_columns_have_the_values_that_were_asked_for(three, me):
    asked = "metric:loss,min:loss,metric:accuracy,duration,queue_time,gpu_hours,steps_per_second,tags"
    rows = {one["name"]: one["columns"] for one in me.get(LIST, {"columns": asked}).json()["results"]}
    assert list(rows["a"]) == asked.split(",")
    assert (rows["a"]["metric:loss"], rows["a"]["min:loss"], rows["a"]["metric:accuracy"]) == (0.2, 0.2, 0.5)
    assert rows["c"]["metric:loss"] is None
    assert rows["a"]["gpu_hours"] == 0
    assert rows["a"]["duration"] is None
    assert rows["a"]["queue_time"] >= 0
    assert me.get(LIST).json()["results"][0]["columns"] == {}


def test_conditions_are_met_by_all_that_are_listed(three, me):
    assert names(me, where="loss < 0.3") == ["a"]
    assert names(me, where=["loss < 0.7", "accuracy > 0.8"]) == ["b"]
    assert names(me, where="min:loss <= 0.1") == ["b"]
    assert names(me, where="loss < 1", ordering="metric:loss") == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"ordering": "spec"}, "unknown_column"),
        ({"ordering": "-metric:"}, "unknown_column"),
        ({"columns": "metric:loss,secret"}, "unknown_column"),
        ({"columns": ",".join(f"metric:{n}" for n in range(13))}, "too_many"),
        ({"where": "loss"}, "bad_condition"),
    ],
)
def test_what_is_no_column_is_refused_by_name(me, world, query, code):
    answer = me.get(LIST, query)
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, code)


@pytest.mark.parametrize("blank", ["", " ", ","])
def test_blank_columns_are_none(three, me, blank):
    answer = me.get("/api/v1/jobs/", {"columns": blank})
    assert answer.status_code == 200
    assert answer.json()["results"][0]["columns"] == {}


def test_all_other_columns_sort_the_list_as_well(world, ada, me):
    now = timezone.now()
    for number, name in enumerate(("a", "b", "c"), start=1):
        job = world.launch(ada, name=name, arguments=[f"--lr={10 * number}"])
        facts = {"started_at": now - timedelta(hours=number), "decided_at": now, "steps_per_second": -number}
        Job.objects.filter(pk=job.pk).update(queued_at=now - timedelta(days=4 - number), **facts)
        me.patch(f"{LIST}{job.pk}/", {"tags": [f"tag {9 - number}"]}, format="json")
        Reservation.objects.create(
            job_id=job.pk, attempt=1, role="worker", namespace_id=job.namespace_id, engine=job.engine, cpu=1, memory=1,
            gpus=number, reserved_at=now - timedelta(hours=1), released_at=now, namespace_slug="x", owner_id=ada.pk,
        )  # fmt: skip
    up = {"duration", "gpu_hours", "parameter:lr", "name", "created"}
    for key in up:
        assert names(me, ordering=key) == ["a", "b", "c"], key
        assert names(me, ordering=f"-{key}") == ["c", "b", "a"], key
    for key in {"queue_time", "steps_per_second", "tags"}:
        assert names(me, ordering=key) == ["c", "b", "a"], key
    row = me.get(LIST, {"columns": "gpu_hours,parameter:lr,duration", "ordering": "name"}).json()["results"][2]
    assert row["columns"] == {"gpu_hours": 3.0, "parameter:lr": 30.0, "duration": 10800.0}


def test_a_foreign_job_is_in_no_sorted_list(three, bob, signed_in):
    assert names(signed_in(bob), ordering="-metric:loss") == []


def test_a_sorted_list_with_columns_takes_few_statements(three, me, django_assert_max_num_queries):
    query = {"ordering": "-metric:loss", "columns": "metric:loss,gpu_hours,tags", "page_size": 2, "where": "loss < 1"}
    me.get(LIST, query)
    with django_assert_max_num_queries(8):
        assert me.get(LIST, query).status_code == 200
