"""The page of a job's log: which log it shows, what is in it without a script, and what its script is told and asks."""

from __future__ import annotations

import html
import json
import re

import pytest

from apps.logs import selectors, view_facts
from apps.stores import log_store
from tests.integration.logs.conftest import job, job_of, store, worker
from yardmaster.job.spec import Role
from yardmaster.logs.keys import StreamKey

__all__ = ["job", "store"]

pytestmark = pytest.mark.django_db
HOSTILE = ["</pre><script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "\u202egnp.exe", "n" * 200]


@pytest.fixture(autouse=True)
def _levels_are_counted_to_the_end(monkeypatch):
    """However long this machine stands still meanwhile."""
    monkeypatch.setattr(view_facts, "COUNT_SECONDS", 60.0)
    monkeypatch.setattr(selectors, "COUNT_SECONDS", 60.0)


@pytest.fixture
def see(client):
    def get(user, job, query: str = "") -> str:
        client.force_login(user)
        response = client.get(f"/jobs/{job.pk}/logs/{query}")
        assert response.status_code == 200
        return response.content.decode()

    return get


def config_of(page: str) -> dict:
    return json.loads(html.unescape(re.search(r'data-log="([^"]*)"', page)[1]))


def write(stream: StreamKey, *lines: str, time: int = 1) -> None:
    first = log_store().next_line(stream)
    log_store().append(stream, first, "".join(f"{line}\n" for line in lines).encode(), [(0, time)])


def ps(job) -> StreamKey:
    return StreamKey(job.pk, 1, Role.PS, 0)


def test_the_end_of_the_log_is_there_without_a_script(ada, job, see):
    write(worker(job), *(f"step {number}" for number in range(500)))
    page = see(ada, job)
    assert "step 499" in page
    assert "step 440" in page
    assert "step 439" not in page
    assert f"/api/v1/jobs/{job.pk}/logs/raw/?attempt=1" in page


def test_one_task_is_shown_where_the_address_names_it(ada, job, see):
    write(worker(job), "of the worker")
    write(ps(job), "of the parameter server")
    page = see(ada, job, "?task=ps-0")
    assert "of the parameter server" in page
    assert "of the worker" not in page
    assert config_of(page)["task"] == "ps-0"
    assert "&amp;role=ps&amp;index=0" in page


@pytest.mark.parametrize("query", ["?task=nobody-7", "?task=worker-99", "?attempt=99", "?attempt=x", "?task=%00-1"])
def test_an_old_link_shows_more_and_is_no_error(ada, job, client, query):
    write(worker(job), "here")
    client.force_login(ada)
    response = client.get(f"/jobs/{job.pk}/logs/{query}")
    assert response.status_code == (400 if "%00" in query else 200)


def test_the_script_is_told_how_long_each_log_is_and_how_many_errors_there_are(ada, job, see):
    write(worker(job), "fine", "WARNING:root:hm", "ERROR:root:no", "\x1b[31mERROR\x1b[0m again")
    write(ps(job), "fine")
    told = config_of(see(ada, job))
    assert told["lines"] == {"ps-0": 1, "worker-0": 4}
    assert (told["levels"]["errors"], told["levels"]["warnings"]) == (2, 1)
    assert told["levels"]["first_error"] == {"role": "worker", "index": 0, "n": 2, "t": 1}


def test_a_job_without_lines_says_that_they_will_come(ada, job, see):
    assert "They appear here as soon as a task writes one" in see(ada, job)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_lines_and_names_harm_no_page(ada, job, see, text):
    job.name = text[:200]
    job.save()
    write(worker(job), text)
    page = see(ada, job)
    assert "<script>" not in page
    assert "<img src=x" not in page
    assert " style=" not in page


def test_it_is_for_those_who_may_see_the_job(ada, bob, job, client):
    client.force_login(bob)
    assert client.get(f"/jobs/{job.pk}/logs/").status_code == 404
    client.logout()
    assert client.get(f"/jobs/{job.pk}/logs/").status_code == 302


def test_it_takes_few_queries_however_many_tasks_there_are(ada, job, client, django_assert_max_num_queries):
    for index in range(30):
        write(worker(job, index), "x")
    client.force_login(ada)
    client.get("/")
    with django_assert_max_num_queries(8):
        assert client.get(f"/jobs/{job.pk}/logs/").status_code == 200


class TestWhatItsScriptAsks:
    @pytest.fixture
    def ask(self, ada, signed_in):
        client = signed_in(ada)

        def get(job, what: str, status: int = 200, **query):
            answer = client.get(f"/api/v1/jobs/{job.pk}/logs/{what}/", query)
            assert answer.status_code == status, answer.content
            return answer.json()

        return get

    def test_merged_lines_are_read_backwards_from_where_they_were_read(self, job, ask):
        for time in range(40):
            write(worker(job), f"w{time}", time=1000 * time)
            write(ps(job), f"p{time}", time=1000 * time + 500)
        page = ask(job, "lines", **{"from": -10, "limit": 10})
        seen = [line["text"] for line in page["lines"]]
        while page["start"]:
            page = ask(job, "lines", before=json.dumps(page["start"]), limit=7)
            seen = [line["text"] for line in page["lines"]] + seen
        assert seen == [text for time in range(40) for text in (f"w{time}", f"p{time}")]

    def test_merged_lines_are_read_from_any_place_and_around_any_line(self, job, ask):
        for time in range(40):
            write(worker(job), f"w{time}", time=1000 * time)
            write(ps(job), f"p{time}", time=1000 * time + 500)
        assert ask(job, "lines", **{"from": 21, "limit": 2})["lines"][0]["text"] == "p10"
        after = ask(job, "lines", after='{"worker-0": 39, "ps-0": 40}')
        assert [line["text"] for line in after["lines"]] == ["w39"]
        around = [line["text"] for line in ask(job, "lines", around="ps-0:20", limit=9)["lines"]]
        assert "p20" in around
        assert around[0] != "p20"

    @pytest.mark.parametrize(
        ("name", "value"),
        [("before", "{"), ("before", "[]"), ("after", '{"worker-0": -1}'), ("after", '{"w": 1.5}'), ("around", "x:1")],
    )
    def test_a_place_that_is_none_is_refused(self, job, ask, name, value):
        assert ask(job, "lines", status=400, **{name: value})["errors"][0]["field"] == name

    def test_levels_are_counted_once_and_on_from_there(self, job, ask):
        write(worker(job), "ERROR a", "fine")
        first = ask(job, "levels", role="worker", index=0)
        assert (first["errors"], first["lines"], first["of"]) == (1, 2, 2)
        write(worker(job), "ERROR b", "WARNING c")
        second = ask(job, "levels", role="worker", index=0)
        assert (second["errors"], second["warnings"], second["lines"]) == (2, 1, 4)
        assert second["first_error"]["n"] == 0

    def test_another_person_s_log_has_no_levels(self, bob, ask):
        ask(job_of(bob), "levels", status=404)
