"""Jobs side by side: what differs is marked, and what their scalars came to stands in numbers."""

from __future__ import annotations

import re
import uuid

import pytest
from django.utils import timezone

from apps.jobs.models import Job, ScalarPoint
from apps.jobs.pages.comparison import spec_lines
from tests.integration.pages.test_jobs_pages import HOSTILE, make_job

pytestmark = pytest.mark.django_db


def spec(**changes):
    roles = {"worker": {"replicas": 2, "cpu": 0.5, "memory": 3 << 29}, "ps": {"replicas": 1}}
    data = {
        "strategy": "between_graph",
        "roles": roles,
        "code": str(uuid.UUID(int=9)),
        "entry_point": "train.py",
        "reclaim_delay": 90,
    }
    return data | changes


def points(job: Job, tag: str, values, run: str = "worker-0") -> None:
    ScalarPoint.objects.bulk_create(
        ScalarPoint(job=job, attempt=1, run=run, tag=tag, step=step, time=step, value=value)
        for step, value in enumerate(values)
    )


@pytest.fixture
def page(client, ada):
    def get(*jobs: Job, query: str = "") -> str:
        client.force_login(ada)
        ids = "&".join(f"job={job.pk}" for job in jobs)
        response = client.get(f"/jobs/compare/?{ids}{query}")
        assert response.status_code == 200
        return response.content.decode()

    return get


def test_settings_stand_side_by_side_and_differences_are_marked(ada, page):
    one = make_job(ada, "one", spec=spec(arguments=["--steps=600", "--sync"]))
    two = make_job(ada, "two", spec=spec(arguments=["--sync", "--steps=300"], environment={"A": "1"}))
    text = page(one, two)
    marked = re.findall(r'aria-label="Differs">.*?<bdi>([^<]+)</bdi>', text)
    assert marked == ["argument --steps", "variable A"]
    assert "2 differences" in text
    assert "1.5Gi" in text
    assert "1m 30s" in text
    assert "entry_point" in text
    assert "entry_point" not in page(one, two, query="&show=differences")


def test_scalars_come_with_their_ends(ada, page):
    one, two = make_job(ada, "one"), make_job(ada, "two", attempt=1)
    points(one, "accuracy", [0.1, 0.5, 0.4])
    points(one, "loss", [3.0, 2.0, 1.5])
    points(two, "loss", [2.5, None, 0.25])
    text = page(one, two)
    assert 'data-tag="loss"' in text
    assert 'data-tag="accuracy"' not in text
    cells = re.findall(r"<td>([^<]*)</td>", text.split('class="table table-sm compare-ends"')[1])
    assert [cell for cell in cells if cell][:8] == ["1.5", "2", "1.5", "3", "0.25", "2", "0.25", "2.5"]
    both = page(one, two, query="&tag=loss&tag=accuracy&tag=nothing")
    assert 'data-tag="accuracy"' in both
    assert 'data-tag="loss"' in both


def test_jobs_of_the_same_name_are_told_apart(ada, page):
    one, two = make_job(ada, "digits"), make_job(ada, "digits")
    text = page(one, two)
    assert f"digits …{one.pk.hex[-4:]}" in text
    assert f"digits …{two.pk.hex[-4:]}" in text


def test_points_of_an_older_attempt_are_not_mixed_in(ada, page):
    job = make_job(ada, "one", attempt=2)
    points(job, "loss", [1.0])
    assert "No scalars" in page(job)


def test_foreign_and_unknown_jobs_are_left_out_and_counted(ada, bob, page, client):
    mine, foreign = make_job(ada, "mine"), make_job(bob, "secret-of-bob")
    text = page(mine, foreign, query=f"&job={uuid.uuid4()}")
    assert "secret-of-bob" not in text
    assert "2 of the selected jobs cannot be shown" in text
    assert client.get(f"/jobs/compare/?job={foreign.pk}").status_code == 404
    assert client.get("/jobs/compare/?job=nonsense").status_code == 404


def test_hostile_names_harm_nothing(ada, page):
    jobs = [make_job(ada, name, spec=spec(arguments=[name * 50], environment={"A": name})) for name in HOSTILE]
    points(jobs[0], HOSTILE[0], [1.0], run=HOSTILE[1])
    text = page(*jobs)
    assert "<script>alert" not in text
    assert "<img src=x" not in text


def test_twenty_jobs_cost_few_queries(ada, page, client, django_assert_max_num_queries):
    jobs = [make_job(ada, f"job-{number}", started_at=timezone.now()) for number in range(21)]
    for job in jobs:
        points(job, "loss", [1.0, 2.0])
    assert "1 of the selected jobs cannot be shown" in page(*jobs)
    with django_assert_max_num_queries(12):
        page_ids = "&".join(f"job={job.pk}" for job in jobs)
        assert client.get(f"/jobs/compare/?{page_ids}").status_code == 200


def test_chosen_jobs_of_the_list_lead_here(ada, client):
    jobs = [make_job(ada, "older"), make_job(ada, "newer")]
    client.force_login(ada)
    response = client.post("/jobs/bulk/", {"action": "compare", "job": [str(job.pk) for job in jobs]})
    assert response.headers["Location"] == f"/jobs/compare/?job={jobs[0].pk}&job={jobs[1].pk}"


def test_the_order_of_flags_is_no_difference():
    lines = spec_lines([spec(arguments=["--a=1", "x", "--b"]), spec(arguments=["--b", "x", "--a=1"])], {})
    assert [line.title for line in lines if line.differs] == []
