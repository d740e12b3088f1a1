"""The further columns of the list of jobs: chosen on their page, shown, sorted by, kept for each user and namespace."""

from __future__ import annotations

import html
from urllib.parse import urlencode

import pytest

from apps.jobs.columns import columns_choose, columns_chosen
from apps.jobs.models import JobColumns
from apps.jobs.state.metrics import metrics_take
from apps.namespaces.services import team_create
from tests.integration.pages.test_jobs_pages import make_job

pytestmark = pytest.mark.django_db
COLUMNS = "/jobs/columns/"


def losses(*values: float | None) -> list[dict]:
    return [{"run": ".", "tag": "loss", "step": step, "time": 1.0, "value": value} for step, value in enumerate(values)]


@pytest.fixture
def jobs(ada):
    made = [make_job(ada, name, named_values={"lr": lr}) for name, lr in (("first", 0.1), ("second", 0.2))]
    metrics_take(made[0], losses(0.75, 0.25))
    metrics_take(made[1], losses(0.5))
    return made


def get(client, user, path: str) -> str:
    client.force_login(user)
    answer = client.get(path)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def test_columns_are_offered_chosen_and_shown(client, ada, jobs):
    page = get(client, ada, COLUMNS)
    assert 'value="metric:loss"' in page
    assert 'value="parameter:lr"' in page
    answer = client.post(COLUMNS, {"column": ["metric:loss", "parameter:lr", "duration"], "more": "max:loss, min:acc"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/jobs/")
    text = get(client, ada, "/jobs/")
    assert 'data-columns="metric:loss,parameter:lr,duration,max:loss,min:acc"' in text
    assert ">0.25</bdi>" in text
    assert ">0.75</bdi>" in text
    assert 'value="min:acc" checked' in get(client, ada, COLUMNS), "though no job has it"
    rows = get(client, ada, f"/jobs/rows/?job={jobs[0].pk}&columns=metric:loss,gpu_hours,nonsense")
    assert ">0.25</bdi>" in rows
    assert rows.count("job-cell-value") == 2


def test_what_is_no_column_is_refused_and_nothing_is_saved(client, ada):
    client.force_login(ada)
    answer = client.post(COLUMNS, {"more": "secret"})
    assert answer.status_code == 422
    assert "There is no such column" in answer.content.decode()
    assert client.post(COLUMNS, {"column": [f"metric:{n}" for n in range(13)]}).status_code == 422
    assert not JobColumns.objects.exists()


def test_the_list_is_sorted_as_chosen_and_as_its_address_says(client, ada, jobs):
    columns_choose(ada, ada.personal_namespace, ["metric:loss"], "metric:loss")
    text = get(client, ada, "/jobs/")
    assert text.index(">first<") < text.index(">second<")
    assert 'aria-sort="ascending"' in text
    assert "ordering=-metric%3Aloss" in text, "the head turns it around"
    text = get(client, ada, "/jobs/?ordering=-metric:loss")
    assert text.index(">second<") < text.index(">first<")
    newest = get(client, ada, "/jobs/?ordering=-created")
    assert newest.index(">second<") < newest.index(">first<")
    assert "Jobs, newest first" in newest
    get(client, ada, "/jobs/?ordering=nonsense")


def test_a_condition_filters_and_a_wrong_one_is_said_to_be_wrong(client, ada, jobs):
    text = get(client, ada, "/jobs/?where_metric=loss<0.3")
    assert (">first<" in text, ">second<" in text) == (True, False)
    wrong = get(client, ada, "/jobs/?where_metric=loss")
    assert ">second<" in wrong
    assert 'aria-invalid="true"' in wrong


def test_each_namespace_and_the_list_of_all_have_their_own_and_others_do_not_see_them(client, ada, bob, jobs):
    team = team_create(manager=ada, actor=ada, slug="vision", title="")
    columns_choose(ada, team, ["tags"], "")
    columns_choose(ada, None, ["gpu_hours"], "-gpu_hours")
    assert [one.key for one in columns_chosen(ada, team).columns] == ["tags"]
    assert columns_chosen(ada, ada.personal_namespace).columns == ()
    assert columns_chosen(bob, None).columns == ()
    everywhere = get(client, ada, "/jobs/?where=all")
    assert 'data-columns="gpu_hours"' in everywhere
    columns_choose(ada, None, [], "")
    assert columns_chosen(ada, None).ordering is None
    assert JobColumns.objects.filter(user=ada).count() == 2


def test_names_that_scripts_wrote_are_text(client, ada):
    job = make_job(ada)
    metrics_take(job, [losses(1.0)[0] | {"tag": "</td><script>alert(1)</script>"}])
    name = "metric:</td><script>alert(1)</script>"
    columns_choose(ada, ada.personal_namespace, [name], name)
    for path in (COLUMNS, "/jobs/"):
        assert "<script>alert" not in get(client, ada, path)


def test_a_value_that_is_no_number_is_shown_as_what_it_is(client, ada):
    metrics_take(make_job(ada), [losses(None)[0] | {"not_finite": "inf"}])
    columns_choose(ada, ada.personal_namespace, ["metric:loss", "min:loss"], "")
    assert "∞" in get(client, ada, "/jobs/")


def test_the_list_with_columns_takes_few_statements(client, ada, jobs, django_assert_max_num_queries):
    columns_choose(ada, ada.personal_namespace, ["metric:loss", "gpu_hours", "tags"], "-metric:loss")
    get(client, ada, "/jobs/")
    for path in ("/jobs/?where_metric=loss<9", "/jobs/?ordering=-created", "/jobs/columns/"):
        with django_assert_max_num_queries(8):
            assert client.get(path).status_code == 200


def test_what_the_list_is_sorted_by_has_its_column_while_it_is(client, ada, jobs):
    columns_choose(ada, ada.personal_namespace, ["parameter:lr"], "")
    text = get(client, ada, "/jobs/?ordering=-metric:loss")
    assert 'data-columns="parameter:lr,metric:loss"' in text
    assert text.count('aria-sort="descending"') == 1
    assert ">0.25</bdi>" in text
    assert "ordering=metric%3Aloss" in text, "the head turns it around"
    assert 'data-columns="parameter:lr"' in get(client, ada, "/jobs/"), "nothing was saved"
    assert 'data-columns="parameter:lr"' in get(client, ada, "/jobs/?ordering=name")


def test_what_the_list_is_filtered_by_has_its_column_too(client, ada, jobs):
    text = get(client, ada, "/jobs/?where_metric=max:loss<0.7&ordering=metric:loss")
    assert 'data-columns="metric:loss,max:loss"' in text
    assert text.count("aria-sort=") == 1
    assert ">second<" in text
    assert ">first<" not in text


def test_the_rows_of_a_full_list_keep_the_columns_that_it_is_sorted_and_filtered_by(client, ada, jobs):
    columns_choose(ada, ada.personal_namespace, [f"metric:m{n}" for n in range(12)], "")
    where = ",".join(f"max:x{n}<9" for n in range(5))
    text = get(client, ada, f"/jobs/?ordering=-metric:loss&where_metric={where}")
    shown = text.partition('data-columns="')[2].partition('"')[0]
    assert len(shown.split(",")) == 18
    rows = get(client, ada, f"/jobs/rows/?job={jobs[0].pk}&columns={shown}")
    assert rows.count("job-cell-value") == 18


def test_a_metric_with_a_comma_in_its_name_keeps_its_column_in_a_row_that_is_fetched_again(client, ada, jobs):
    columns_choose(ada, ada.personal_namespace, ["metric:loss, mean 50%", "gpu_hours"], "")
    text = get(client, ada, "/jobs/")
    shown = html.unescape(text.partition('data-columns="')[2].partition('"')[0])
    assert shown == "metric:loss%2C mean 50%25,gpu_hours"
    rows = get(client, ada, f"/jobs/rows/?job={jobs[0].pk}&{urlencode({'columns': shown})}")
    assert rows.count("job-cell-value") == 2
