"""What people get of a job's logs over HTTP."""

from __future__ import annotations

import uuid

import pytest
from django.test import AsyncClient

from apps.namespaces.models import Membership
from apps.namespaces.models import Role as Membershiprole
from tests.integration.logs.conftest import job_of, worker
from tests.unit.logs.conftest import numbered
from yardmaster.job.spec import Role
from yardmaster.logs.keys import StreamKey

pytestmark = pytest.mark.django_db


def address(job, path: str = "", **query) -> str:
    text = "&".join(f"{name.rstrip('_')}={value}" for name, value in query.items())
    return f"/api/v1/jobs/{job.pk}/logs/{path}?{text}"


@pytest.fixture
def filled(job, store):
    """Two workers whose lines alternate in time, and a parameter server that has ended."""
    for number in range(20):
        key = worker(job, number % 2)
        store.append(key, number // 2, f"step {number // 2}\n".encode(), [(0, number * 1000)])
    store.append(StreamKey(job.pk, 1, Role.PS, 0), 0, b"ERROR \xff\n", [(0, 5500)])
    store.mark_end(StreamKey(job.pk, 1, Role.PS, 0), 1)
    return job


def test_streams_are_listed(filled, ada, signed_in):
    streams = signed_in(ada).get(address(filled)).json()["streams"]
    assert [(s["attempt"], s["role"], s["index"], s["lines"], s["ended"]) for s in streams] == [
        (1, "worker", 0, 10, False),
        (1, "worker", 1, 10, False),
        (1, "ps", 0, 1, True),
    ]


def test_one_task_is_read_by_number_and_from_the_end(filled, ada, signed_in):
    client = signed_in(ada)
    page = client.get(address(filled, "lines/", role="worker", index=1, from_=3, limit=2)).json()
    assert page["lines"][0] == {"n": 3, "t": 7000, "text": "step 3", "role": "worker", "index": 1}
    assert (page["next"], page["ended"], page["gaps"]) == (5, False, [])
    tail = client.get(address(filled, "lines/", role="worker", index=1, from_=-1)).json()
    assert [line["n"] for line in tail["lines"]] == [9]


def test_all_tasks_are_read_by_time_page_by_page(filled, ada, signed_in):
    client = signed_in(ada)
    seen, query = [], {}
    while True:
        page = client.get(address(filled, "lines/", limit=4, **query)).json()
        if not page["lines"]:
            break
        seen += page["lines"]
        query = {"cursor": page["next"]}
    assert len(seen) == 21
    assert [line["t"] for line in seen] == sorted(line["t"] for line in seen)
    tail = client.get(address(filled, "lines/", from_=-3)).json()["lines"]
    assert [line["t"] for line in tail] == [17000, 18000, 19000]


def test_bytes_that_are_no_text_are_shown_as_such(filled, ada, signed_in):
    page = signed_in(ada).get(address(filled, "lines/", role="ps")).json()
    assert page["lines"][0]["text"] == "ERROR \ufffd"
    assert page["ended"]


def test_search_finds_lines_of_all_tasks_and_goes_on(filled, ada, signed_in):
    client = signed_in(ada)
    page = client.get(address(filled, "search/", q="STEP 7")).json()
    assert [(m["role"], m["index"], m["n"]) for m in page["matches"]] == [("worker", 0, 7), ("worker", 1, 7)]
    assert page["next"] is None
    first = client.get(address(filled, "search/", q="step", limit=12)).json()
    rest = client.get(address(filled, "search/", q="step", limit=12, from_=first["next"])).json()
    assert len(first["matches"]) + len(rest["matches"]) == 20
    errors = client.get(address(filled, "search/", level="error")).json()
    assert [m["role"] for m in errors["matches"]] == ["ps"]
    some = client.get(address(filled, "search/", q="p [12]$", regex="1", role="worker", index=1)).json()
    assert [m["n"] for m in some["matches"]] == [1, 2]


@pytest.mark.parametrize(
    "query",
    [
        {"q": ""},
        {"q": "(", "regex": 1},
        {"q": "x", "from_": "nowhere:1"},
        {"q": "x", "from_": "%C2%B2"},
        {"q": "x" * 501},
    ],
)
def test_a_search_that_cannot_be_is_explained(filled, ada, signed_in, query):
    answer = signed_in(ada).get(address(filled, "search/", **query))
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["message"]


def test_an_expression_that_takes_for_ever_does_not(job, store, ada, signed_in, monkeypatch):
    monkeypatch.setattr("apps.logs.selectors.SEARCH_SECONDS", 0.3)
    store.append(worker(job), 0, b"a" * 50 + b"!\n")
    answer = signed_in(ada).get(address(job, "search/", q="(a%2B)%2B$", regex=1))
    assert answer.status_code == 400
    assert "nested" in answer.json()["errors"][0]["remedy"]


@pytest.mark.parametrize("cursor", ["x", "WzFd", "bnVsbA"])
def test_a_cursor_that_was_not_given_out_is_400(filled, ada, signed_in, cursor):
    assert signed_in(ada).get(address(filled, "lines/", cursor=cursor)).status_code == 400


def test_the_download_of_one_task_is_its_bytes(filled, ada, signed_in):
    answer = signed_in(ada).get(address(filled, "raw/", role="ps"))
    assert b"".join(answer.streaming_content) == b"ERROR \xff\n"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="digits-1-ps-0.log"'


def test_the_download_of_all_names_the_tasks(filled, ada, signed_in):
    text = b"".join(signed_in(ada).get(address(filled, "raw/")).streaming_content).decode(errors="replace")
    assert text.startswith("[worker-0] step 0\n[worker-1] step 0\n")
    assert "[ps-0] ERROR" in text


@pytest.mark.django_db(transaction=True)
async def test_a_long_download_comes_in_pieces(job, store, ada):
    for first in range(0, 300_000, 50_000):
        store.append(worker(job), first, numbered(first, 50_000))
    client = AsyncClient()
    await client.aforce_login(ada)
    answer = await client.get(address(job, "raw/", role="worker"))
    pieces = [piece async for piece in answer.streaming_content]
    assert len(pieces) > 2
    assert b"".join(pieces) == numbered(0, 300_000)


PATHS = ["", "lines/", "search/", "raw/"]


@pytest.mark.parametrize("path", PATHS)
def test_skypilot_8072_ordinary_members_see_the_logs_and_foreigners_a_404(filled, bob, signed_in, path):
    query = {"q": "x"} if path == "search/" else {}
    client = signed_in(bob)
    assert client.get(address(filled, path, **query)).status_code == 404
    Membership.objects.create(namespace=filled.namespace, user=bob, role=Membershiprole.VIEWER)
    assert client.get(address(filled, path, **query)).status_code == 200


def test_a_token_that_may_only_touch_data_reads_no_logs(filled, ada, with_token):
    assert with_token(ada, "data").get(address(filled)).status_code == 403
    assert with_token(ada, "read").get(address(filled)).status_code == 200


def test_a_job_without_logs_has_none_and_an_unknown_one_is_404(job, ada, signed_in):
    client = signed_in(ada)
    assert client.get(address(job)).json() == {"streams": []}
    assert client.get(address(job, "lines/")).json()["lines"] == []
    assert client.get(address(job, "raw/")).status_code == 200
    assert client.get(f"/api/v1/jobs/{uuid.uuid4()}/logs/").status_code == 404


def test_the_newest_attempt_is_read_unless_another_is_named(job, ada, signed_in, store):
    store.append(worker(job, attempt=1), 0, b"old\n")
    store.append(worker(job, attempt=2), 0, b"new\n")
    type(job).objects.filter(pk=job.pk).update(attempt=2)
    client = signed_in(ada)
    assert client.get(address(job, "lines/")).json()["lines"][0]["text"] == "new"
    assert client.get(address(job, "lines/", attempt=1)).json()["lines"][0]["text"] == "old"


def test_a_deleted_job_s_logs_are_gone(ada, store):
    from apps.jobs.worker.removal import remove

    other = job_of(ada)
    job_id = other.pk
    store.append(worker(other), 0, b"a\n")
    remove(other)
    assert store.streams(job_id) == []
