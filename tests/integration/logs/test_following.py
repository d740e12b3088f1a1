"""Following a log over WebSocket: nothing lost, nothing doubled, whatever is cut, slow, late or restarted."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import pytest
from channels.db import database_sync_to_async
from channels.routing import URLRouter
from django.utils import timezone

from apps.accounts.services import token_create
from apps.accounts.websocket_auth import TokenOrSession
from apps.jobs.models import JobAttempt
from apps.logs import consumers, followers, tails
from apps.logs.consumers import websocket_urlpatterns
from apps.logs.frames import FRAME_BYTES, Frames, make_frame
from apps.logs.tails import following
from tests.integration.logs.conftest import job_of, worker
from tests.integration.logs.socket_client import SocketClient
from tests.unit.logs.conftest import numbered
from yardmaster.logs.followed import is_followed
from yardmaster_runner.answers import meaning

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(tails, "POLL", 0.05)
    monkeypatch.setattr(tails, "SELDOM", 0.05)
    monkeypatch.setattr(tails, "SHOWN_EVERY", 0.0)


@pytest.fixture
def token(ada) -> str:
    return token_create(user=ada, name="test", scopes=[], expires_in=None)[1]


@contextlib.asynccontextmanager
async def socket(job, token: str, **query) -> AsyncIterator[SocketClient]:
    text = urlencode({name.rstrip("_"): value for name, value in query.items()})
    address = f"/ws/jobs/{job.pk}/logs/?{text}"
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    client = SocketClient(TokenOrSession(URLRouter(websocket_urlpatterns)), address, headers)
    assert await client.connect()
    try:
        yield client
    finally:
        await client.disconnect()


async def message(client: SocketClient) -> dict:
    return json.loads((await client.receive_output())["text"])


async def lines(client: SocketClient, count: int) -> list[tuple[str, int, str]]:
    """The next `count` lines as (task, number, text); checks that frames follow one another."""
    found = []
    while len(found) < count:
        frame = await message(client)
        if frame["type"] == "lines":
            name = f"{frame['role']}-{frame['index']}"
            found += [(name, frame["first"] + offset, text) for offset, (_, text) in enumerate(frame["lines"])]
    return found


async def closed_with(client: SocketClient) -> int:
    while True:
        output = await client.receive_output()
        if output["type"] == "websocket.close":
            return output["code"]


async def end_attempt(job, number: int = 1) -> None:
    rows = JobAttempt.objects.filter(job=job, number=number)
    await database_sync_to_async(rows.update)(cleaned_up_at=timezone.now())


async def test_lines_come_as_they_are_written(job, token, store):
    store.append(worker(job), 0, b"a\n\xff\n", [(0, 1000), (1, 2000)])
    async with socket(job, token, role="worker", index=0) as client:
        assert (await message(client))["type"] == "ping"
        assert await message(client) == {
            "type": "lines",
            "role": "worker",
            "index": 0,
            "first": 0,
            "lines": [[1000, "a"], [2000, "\ufffd"]],
        }
        store.append(worker(job), 2, b"c\n")
        assert await lines(client, 1) == [("worker-0", 2, "c")]


async def test_a_line_that_is_not_finished_is_shown_until_it_is_there(job, token, store):
    store.append(worker(job), 0, b"a\n", [(0, 1000)])
    async with socket(job, token, role="worker", index=0) as client:
        assert await lines(client, 1) == [("worker-0", 0, "a")]
        await until_followed(job, store)
        tail, _ = following()._tails[job.pk, 1]
        for attempt, line, text in ((1, 0, "late"), (2, 1, "of another attempt"), (1, 1, "\x1b[1m2/2\x1b[0m")):
            tail._show({"role": "worker", "index": 0, "attempt": attempt, "line": line, "text": text})
        shown = {"type": "open", "role": "worker", "index": 0, "line": 1, "text": "\x1b[1m2/2\x1b[0m"}
        assert await message(client) == shown
        store.append(worker(job), 1, b"2/2\n")
        assert await lines(client, 1) == [("worker-0", 1, "2/2")]
        assert store.next_line(worker(job)) == 2
    assert not is_followed(store.root, job.pk)


async def until_followed(job, store) -> None:
    async with asyncio.timeout(10):
        while not is_followed(store.root, job.pk):
            await asyncio.sleep(0.01)


def test_the_answer_to_an_unfinished_line_is_one_that_the_runner_takes_for_the_portals(job, task):
    answer = task(job).post("/api/v1/task/log/open/?role=worker&index=0&line=3", {"text": "50 %"}, format="json")
    read = meaning(answer.status_code, answer["Content-Type"], answer.content, "", "the unfinished line")
    assert read == {"line": 3}


@pytest.mark.parametrize(("query", "text"), [("line=-1", "x"), ("line=1", "x" * 20_001), ("", "x")])
def test_what_is_no_unfinished_line_is_refused(job, task, query, text):
    answer = task(job).post(f"/api/v1/task/log/open/?role=worker&index=0&{query}", {"text": text}, format="json")
    assert answer.status_code == 400


async def test_a_cut_loses_and_doubles_no_line(job, token, store):
    """The client reconnects with the number after the last line it has, again and again, while lines come."""
    seen: list[int] = []
    written = 0
    for _ in range(12):
        async with socket(job, token, role="worker", index=0, from_=len(seen)) as client:
            for _ in range(3):
                written = store.append(worker(job), written, numbered(written, 37)).next_line
            seen += [number for _, number, _ in await lines(client, 50)]
    async with socket(job, token, role="worker", index=0, from_=len(seen)) as client:
        if written > len(seen):
            seen += [number for _, number, _ in await lines(client, written - len(seen))]
    assert seen == list(range(written))


async def test_sdk_182_following_waits_for_a_task_that_is_not_there_yet(job, token, store):
    async with socket(job, token, role="worker", index=3) as client:
        assert (await message(client))["type"] == "ping"
        await asyncio.sleep(0.2)
        store.append(worker(job, 3), 0, b"hello\n")
        assert await lines(client, 1) == [("worker-3", 0, "hello")]


async def test_all_tasks_are_followed_also_those_that_start_later(job, token, store):
    store.append(worker(job, 0), 0, numbered(0, 3))
    async with socket(job, token, from_=json.dumps({"worker-0": 1})) as client:
        assert await lines(client, 2) == [("worker-0", 1, "line 1"), ("worker-0", 2, "line 2")]
        store.append(worker(job, 1), 0, b"late\n")
        assert await lines(client, 1) == [("worker-1", 0, "late")]


@pytest.mark.parametrize(("query", "expected"), [({"role": "worker"}, [7, 8, 9]), ({}, [7, 8, 9])])
async def test_a_negative_start_counts_from_the_end(job, token, store, query, expected):
    store.append(worker(job), 0, numbered(0, 10))
    async with socket(job, token, from_=-3, **query) as client:
        assert [number for _, number, _ in await lines(client, 3)] == expected


async def test_gaps_are_told_in_their_place(job, token, store):
    store.append(worker(job), 0, b"a\n")
    store.mark_gap(worker(job), 1, 5, 100, 0)
    store.append(worker(job), 6, b"b\n")
    async with socket(job, token) as client:
        kinds = [await message(client) for _ in range(4)]
    assert [kind["type"] for kind in kinds] == ["ping", "lines", "gap", "lines"]
    why = {"cause": "lost", "detail": "the portal was away for too long, or the task's disk was full"}
    assert kinds[2] == {"type": "gap", "role": "worker", "index": 0, "first": 1, "count": 5, **why}
    assert kinds[3]["first"] == 6


async def test_the_end_comes_after_everything_was_sent_and_goes_when_the_task_restarts(job, token, store):
    store.append(worker(job), 0, numbered(0, 20_000))
    store.mark_end(worker(job), 20_000)
    async with socket(job, token, role="worker") as client:
        await lines(client, 20_000)
        assert await message(client) == {"type": "end", "role": "worker", "index": 0}
        store.append(worker(job), 20_000, b"again\n")
        assert await lines(client, 1) == [("worker-0", 20_000, "again")]
        store.mark_end(worker(job), 20_001)
        assert (await message(client))["type"] == "end"
        await end_attempt(job)
        assert await message(client) == {"type": "end"}
        assert await closed_with(client) == 1000


async def test_polyaxon_452_an_attempt_that_is_over_ends_also_for_a_task_that_never_wrote(job, token):
    async with socket(job, token, role="worker", index=0) as client:
        assert (await message(client))["type"] == "ping"
        await end_attempt(job)
        assert await message(client) == {"type": "end", "role": "worker", "index": 0}
        assert await message(client) == {"type": "end"}
        assert await closed_with(client) == 1000


async def test_a_stream_that_nobody_closed_ends_with_its_attempt(job, token, store):
    store.append(worker(job), 0, b"a\n")
    await end_attempt(job)
    async with socket(job, token) as client:
        kinds = [(await message(client))["type"] for _ in range(4)]
        assert kinds == ["ping", "lines", "end", "end"]


async def test_an_earlier_attempt_is_followed_by_its_number(job, token, store):
    await database_sync_to_async(JobAttempt.objects.create)(job=job, number=2, spec={}, queued_at=timezone.now())
    await database_sync_to_async(type(job).objects.filter(pk=job.pk).update)(attempt=2)
    store.append(worker(job, attempt=1), 0, b"old\n")
    store.append(worker(job, attempt=2), 0, b"new\n")
    async with socket(job, token) as client:
        assert (await lines(client, 1))[0][2] == "new"
    async with socket(job, token, attempt=1) as client:
        assert (await lines(client, 1))[0][2] == "old"


async def test_a_foreign_job_is_closed_with_4404(bob, token):
    other = await database_sync_to_async(job_of)(bob)
    async with socket(other, token) as client:
        assert await closed_with(client) == 4404


async def test_without_a_token_the_socket_is_closed_with_4401(job):
    async with socket(job, "wrong") as client:
        assert await closed_with(client) == 4401


async def test_a_browser_s_cookie_counts_only_from_the_portal_s_own_pages(job):
    for origin, accepted in ((b"http://127.0.0.1:8080", True), (b"https://evil.example", False)):
        client = SocketClient(
            TokenOrSession(URLRouter(websocket_urlpatterns)), f"/ws/jobs/{job.pk}/logs/", [(b"origin", origin)]
        )
        assert await client.connect() is accepted
        await client.disconnect()


@pytest.mark.parametrize("query", [{"from_": "x"}, {"from_": "[1]"}, {"from_": '{"a": "b"}'}, {"role": "boss"}])
async def test_a_wrong_query_is_closed_with_4400(job, token, query):
    async with socket(job, token, **query) as client:
        assert await closed_with(client) == 4400


async def test_who_may_no_longer_read_is_cut_off(job, token, ada, monkeypatch):
    monkeypatch.setattr(consumers, "LOOK_AGAIN", 0.05)
    async with socket(job, token) as client:
        assert (await message(client))["type"] == "ping"
        await database_sync_to_async(type(ada).objects.filter(pk=ada.pk).update)(is_active=False)
        assert await closed_with(client) == 4401


async def test_rancher_5928_an_idle_socket_is_pinged(job, token, monkeypatch):
    monkeypatch.setattr(followers, "PING_EVERY", 0.1)
    async with socket(job, token) as client:
        assert [(await message(client))["type"] for _ in range(3)] == ["ping", "ping", "ping"]


async def test_fifty_followers_cost_one_reading(job, token, store):
    """Whoever is at the same place gets the same frame: it is read and encoded once, wherever that place is."""
    store.append(worker(job), 0, numbered(0, 10_000))
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(socket(job, token)) for _ in range(50)]
        seen = [await lines(client, 10_000) for client in clients]
        made = following().frames.made
        store.append(worker(job), 10_000, b"tip\n")
        assert [await lines(client, 1) for client in clients] == [[("worker-0", 10_000, "tip")]] * 50
        assert following().frames.made == made + 1
    assert all([number for _, number, _ in one] == list(range(10_000)) for one in seen)
    assert made <= 3


async def test_a_slow_follower_neither_loses_lines_nor_holds_up_others_nor_fills_memory(job, token, store):
    """The slow one sends nothing on until the log is long and its frames are forgotten; then it has all of them."""
    frames = Frames(store, kept_bytes=1)
    tail = tails.Tail(store, job.pk, 1)
    gate = asyncio.Event()
    got: dict[str, list[str]] = {"slow": [], "fast": []}

    async def send_slowly(text: str) -> None:
        await gate.wait()
        got["slow"].append(text)

    async def send_fast(text: str) -> None:
        got["fast"].append(text)

    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(tail.run()),
            *(
                tasks.create_task(followers.Follower(tail, frames, followers.Wanted(), send).run())
                for send in (send_slowly, send_fast)
            ),
        ]
        for first in range(0, 30_000, 5_000):
            store.append(worker(job), first, numbered(first, 5_000))
            await asyncio.sleep(0.1)
        while _numbers(got["fast"]) < 30_000:
            await asyncio.sleep(0.02)
        assert got["slow"] == []
        gate.set()
        while _numbers(got["slow"]) < 30_000:
            await asyncio.sleep(0.02)
        for one in running:
            one.cancel()
    for texts in got.values():
        frames_sent = [frame for text in texts if (frame := json.loads(text))["type"] == "lines"]
        assert [frame["first"] + n for frame in frames_sent for n in range(len(frame["lines"]))] == list(range(30_000))


def _numbers(texts: list[str]) -> int:
    return sum(len(frame["lines"]) for text in texts if (frame := json.loads(text))["type"] == "lines")


async def test_following_goes_on_while_the_message_server_is_away(job, token, store, settings):
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": ["unix:///nowhere/valkey.sock"]},
        }
    }
    async with socket(job, token) as client:
        store.append(worker(job), 0, b"a\n")
        assert await lines(client, 1) == [("worker-0", 0, "a")]


@pytest.mark.parametrize(
    "data",
    [
        b"x" * 20 + b"\n",
        b"\x00" * 60_000 + b"\n",
        b"\xff" * 65_536 + b"\n",
        (b"\x01" * 900 + b"\n") * 1000,
        b"\n" * 200_000,
        b'"\\' * 30_000 + b"\n" + b"short\n",
    ],
)
def test_no_message_is_longer_than_the_limit_and_no_line_is_skipped(job, store, data):
    store.append(worker(job), 0, data)
    at, count = 0, data.count(b"\n")
    while at < count:
        frame = make_frame(store, worker(job), at)
        assert frame is not None
        assert len(frame.text.encode()) <= FRAME_BYTES
        assert frame.next_line == at + len(json.loads(frame.text)["lines"])
        at = frame.next_line
    assert make_frame(store, worker(job), at) is None
