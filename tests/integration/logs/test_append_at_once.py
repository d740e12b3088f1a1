"""The short way gives the same answers as the view, and the plain case does not reach Django."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.core.asgi import get_asgi_application
from django.urls import reverse

from apps.jobs.state.task_auth import TaskIdentity, token_of
from apps.logs import append_at_once, intake
from apps.logs.append_at_once import AppendAtOnce
from apps.logs.intake import RememberedTaskToken
from apps.stores import counted_log
from tests.integration.logs.conftest import worker

pytestmark = pytest.mark.django_db(transaction=True)

PLAIN = "role=worker&index=0&first_line=0&lines=2"


async def post(application, token: str, query: str, *pieces: bytes, headers=()) -> tuple[int, dict]:
    scope = {
        "type": "http",
        "method": "POST",
        "path": append_at_once.PATH,
        "query_string": query.encode(),
        "headers": [(b"authorization", f"Bearer {token}".encode()), (b"host", b"127.0.0.1"), *headers],
    }
    client = ApplicationCommunicator(application, scope)
    for number, piece in enumerate(pieces, 1):
        await client.send_input({"type": "http.request", "body": piece, "more_body": number < len(pieces)})
    start = await client.receive_output(10)
    body = (await client.receive_output(10))["body"]
    await client.wait(10)
    return start["status"], json.loads(body)


async def no_django(*_: object) -> None:
    raise AssertionError("the plain case has reached Django")


@pytest.fixture
async def known(job) -> str:
    token = token_of(job.pk, 1)
    RememberedTaskToken.known[f"Bearer {token}"] = (
        float("inf"),
        TaskIdentity(job.pk, 1, job.namespace_id, {"worker": 1}),
    )
    counted_log().grant(job.pk, 1, 1 << 20)
    return token


def test_the_address_is_the_view_s():
    assert reverse("task-log") == append_at_once.PATH


async def test_a_known_token_s_lines_are_kept_without_django(job, known, store):
    answer = await post(AppendAtOnce(no_django), known, PLAIN, b"a\n", b"b\n", headers=[(b"x-times", b"0:5,1:50")])
    assert answer == (200, {"next_line": 2})
    assert [tuple(line) for line in store.read(worker(job), 0, 9).lines] == [(0, 5, b"a"), (1, 50, b"b")]


async def test_the_token_itself_is_kept_by_neither_way(job, known, store):
    answer = await post(AppendAtOnce(no_django), known, PLAIN, b"Bearer " + known.encode() + b"\nb\n")
    assert answer == (200, {"next_line": 2})
    assert [line[2] for line in store.read(worker(job), 0, 9).lines] == [b"Bearer [task token]", b"b"]


async def test_the_first_request_of_a_token_is_checked_and_the_next_are_short(job, store):
    token = token_of(job.pk, 1)
    assert await post(AppendAtOnce(get_asgi_application()), token, PLAIN, b"a\nb\n") == (200, {"next_line": 2})
    assert await post(AppendAtOnce(no_django), token, PLAIN, b"a\nb\n") == (200, {"next_line": 2})


async def test_another_writer_s_lines_are_not_taken_for_one_s_own(job, known, store):
    for _ in range(2):
        assert await post(AppendAtOnce(no_django), known, f"{PLAIN}&writer=1", b"a\nb\n") == (200, {"next_line": 2})
    status, problem = await post(AppendAtOnce(get_asgi_application()), known, f"{PLAIN}&writer=2", b"c\nd\n")
    assert (status, problem["code"], problem["next_line"]) == (409, "written_by_another", 2)
    assert store.next_line(worker(job)) == 2


@pytest.mark.parametrize(
    ("query", "pieces", "headers", "status"),
    [
        (PLAIN.replace("first_line=0", "first_line=7"), [b"a\nb\n"], [], 409),
        (PLAIN, [b"a\n"], [], 400),
        (PLAIN, [b"a\nb\n"], [(b"content-encoding", b"br")], 400),
        (PLAIN, [b"a\nb\n"], [(b"x-times", b"?")], 400),
        (PLAIN.replace("index=0", "index=x"), [b"a\nb\n"], [], 400),
        (PLAIN.replace("index=0", "index=99999999"), [b"a\nb\n"], [], 400),
        (PLAIN.replace("first_line=0", "first_line=-1"), [b"a\nb\n"], [], 400),
        (PLAIN.replace("worker", "boss"), [b"a\nb\n"], [], 400),
        (f"{PLAIN}&writer={1 << 32}", [b"a\nb\n"], [], 400),
        (PLAIN, [b"x" * intake.MOST_BYTES, b"y\n", b"z\n"], [], 413),
    ],
)
async def test_what_is_not_plain_is_answered_by_the_view(job, known, store, query, pieces, headers, status):
    answer = await post(AppendAtOnce(get_asgi_application()), known, query, *pieces, headers=headers)
    assert answer[0] == status
    assert answer[1]["code"]
    assert store.next_line(worker(job)) == 0


async def test_a_forged_token_does_not_pass(job, store):
    assert (await post(AppendAtOnce(get_asgi_application()), "ymt.x.1.y", PLAIN, b"a\nb\n"))[0] == 401
    assert await database_sync_to_async(store.next_line)(worker(job)) == 0


async def test_a_write_that_its_namespace_must_be_charged_for_goes_on_to_the_view(job, known, store):
    counted_log().grant(job.pk, 1, 0)
    assert await post(AppendAtOnce(get_asgi_application()), known, PLAIN, b"a\nb\n") == (200, {"next_line": 2})
    assert await post(AppendAtOnce(no_django), known, PLAIN.replace("first_line=0", "first_line=2"), b"a\nb\n") == (
        200, {"next_line": 4},
    )  # fmt: skip


async def test_a_full_log_is_said_without_django_too(job, known, store, settings):
    settings.YARDMASTER_LOG_LIMIT = 64
    status, answer = await post(AppendAtOnce(no_django), known, f"{PLAIN}&tail=0", b"a\nb\n")
    assert (status, answer["next_line"], answer["full"]["cause"]) == (200, 0, "log_limit")


async def test_a_body_is_unpacked_once(job, known, store, monkeypatch):
    """Also where the view says what is wrong, and where the namespace must be charged first."""

    def again(*_: object) -> bytes:
        raise AssertionError("unpacked a second time")

    monkeypatch.setattr("apps.logs.task_views.lines_of", again)
    application = AppendAtOnce(get_asgi_application())
    packed = [(b"content-encoding", b"gzip")]
    for query, body, code in (
        (PLAIN, gzip.compress(b"a\n" * 3), "invalid"),
        (PLAIN, b"no gzip", "invalid"),
        (PLAIN.replace("first_line=0", "first_line=7"), gzip.compress(b"a\nb\n"), "past_the_end"),
    ):
        assert (await post(application, known, query, body, headers=packed))[1]["code"] == code
    counted_log().grant(job.pk, 1, 0)
    assert await post(application, known, PLAIN, gzip.compress(b"a\nb\n"), headers=packed) == (200, {"next_line": 2})


async def test_writes_of_one_job_wait_for_each_other_and_other_jobs_for_none(job, known, store, monkeypatch):
    monkeypatch.setattr(append_at_once, "PATIENCE", 0.2)
    open_again, under_way = asyncio.Event(), asyncio.Semaphore(0)

    async def held_up(scope, receive, send) -> None:
        under_way.release()
        await open_again.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    application = AppendAtOnce(held_up)
    slow = [asyncio.create_task(post(application, known, "x=1", b"a\n")) for _ in range(append_at_once.AT_ONCE)]
    for _ in slow:
        await under_way.acquire()
    status, problem = await post(application, known, PLAIN, b"a\nb\n")
    assert (status, problem["code"]) == (429, "too_many_at_once")
    assert store.next_line(worker(job)) == 0
    other = asyncio.create_task(post(application, "ymt.other", PLAIN, b"a\n"))
    await under_way.acquire()
    open_again.set()
    assert {(await one)[0] for one in (*slow, other)} == {200}
    assert await post(application, known, PLAIN, b"a\nb\n") == (200, {"next_line": 2})


async def test_a_task_that_the_job_does_not_have_gets_no_stream(job, known, store):
    for query in (PLAIN.replace("index=0", "index=1"), PLAIN.replace("worker", "ps")):
        status, problem = await post(AppendAtOnce(get_asgi_application()), known, query, b"a\nb\n")
        assert (status, problem["code"]) == (404, "unknown_task")
    assert store.keys(job.pk) == []
