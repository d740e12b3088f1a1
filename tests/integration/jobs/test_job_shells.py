"""Who may open a terminal in a task, which runner may join it, and what passes between the two sockets."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import token_create, user_change
from apps.audit.models import AuditEvent
from apps.errors import Conflict, Forbidden, NotFound
from apps.jobs import shell_sockets, shells
from apps.jobs.models import Job, JobEvent, TaskFact, TaskShell
from apps.jobs.state.task_auth import TaskIdentity, token_of
from apps.namespaces.models import Membership, Namespace
from portal.asgi import application
from tests.integration.jobs.world import World, task_of
from tests.integration.logs.socket_client import SocketClient
from yardmaster_runner.shell_protocol import WINDOW, cost

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _layer_in_memory(settings):
    layer = {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 10_000}}
    settings.CHANNEL_LAYERS = {"default": layer}


def running(world: World, user: User, **changes: Any) -> Job:
    """A job whose one worker says that it runs."""
    job = world.launch(user, **changes)
    world.settle()
    world.settle()
    job = world.again(job)
    said(job, "running")
    return job


def said(job: Job, state: str, **reported: Any) -> None:
    key = {"job": job, "attempt": job.attempt, "role": "worker", "index": 0}
    TaskFact.objects.update_or_create(**key, defaults={"state": state, "reported": {"restart": 0, **reported}})


def opened(user: User, job: Job, **changes: Any) -> TaskShell:
    given = {"role": "worker", "index": 0, "channel": "x", **changes}
    return shells.shell_open(user=user, job_id=job.pk, **given)


def identity(job: Job, attempt: int | None = None) -> TaskIdentity:
    return TaskIdentity(job.pk, attempt or job.attempt, job.namespace_id, {"worker": 1})


class TestStacks:
    ADDRESS = "/api/v1/jobs/{}/tasks/worker-0/stacks/"

    def test_the_task_hears_how_often_they_were_asked_for_and_it_is_written_down(self, world, ada, signed_in):
        job = running(world, ada)
        report = {"role": "worker", "index": 0, "state": "running"}
        assert task_of(job).post("/api/v1/task/report/", report, format="json").json()["stacks"] == 0
        for count in (1, 2):
            answer = signed_in(ada).post(self.ADDRESS.format(job.pk))
            assert (answer.status_code, answer.json()) == (202, {"role": "worker", "index": 0})
            assert task_of(job).post("/api/v1/task/report/", report, format="json").json()["stacks"] == count
        audited = AuditEvent.objects.filter(action="job.stacks").order_by("id")
        assert [one.facts["task"] for one in audited] == ["worker-0", "worker-0"]

    def test_a_task_that_does_not_run_and_a_user_who_may_not_are_refused(self, world, ada, bob, signed_in):
        job = running(world, ada)
        assert signed_in(bob).post(self.ADDRESS.format(job.pk)).status_code == 404
        assert signed_in(ada).post(self.ADDRESS.format(job.pk).replace("-0", "-9")).status_code == 404
        said(job, "uploading")
        refused = signed_in(ada).post(self.ADDRESS.format(job.pk))
        assert (refused.status_code, refused.json()["code"]) == (409, "not_running")

    def test_a_job_whose_tasks_stand_still_says_so(self, world, ada, signed_in):
        job = running(world, ada)
        stalled = {"since": time.time() - 300, "peer": "/job:ps/replica:0/task:0"}
        report = {"role": "worker", "index": 0, "state": "running", "stalled": stalled}
        assert task_of(job).post("/api/v1/task/report/", report, format="json").status_code == 200
        TaskFact.objects.filter(job=job, role="worker", index__gt=0).update(phase="SUCCEEDED")
        why = signed_in(ada).get(f"/api/v1/jobs/{job.pk}/why/").json()
        assert why["reason"] == "TasksStalled"
        assert "worker-0 waits for ps-0" in why["message"]
        tasks = signed_in(ada).get(f"/api/v1/jobs/{job.pk}/tasks/").json()["results"]
        task = next(one for one in tasks if (one["role"], one["index"]) == ("worker", 0))
        assert task["waits_for"] == "ps-0"
        assert task["stalled_since"]
        page = signed_in(ada).get(f"/jobs/{job.pk}/").content.decode()
        assert "No progress, output or processor use since" in page
        assert f"/jobs/{job.pk}/tasks/worker-0/stacks/" in page
        again = task_of(job).post("/api/v1/task/report/", report | {"stalled": None}, format="json")
        assert again.status_code == 200
        assert signed_in(ada).get(f"/api/v1/jobs/{job.pk}/why/").json()["reason"] != "TasksStalled"


class TestWho:
    def test_a_member_may_and_it_is_written_down(self, world, ada):
        job = running(world, ada)
        shell = opened(ada, job)
        shells.shell_end(shell.pk, "It was closed.")
        shells.shell_end(shell.pk, "Once more.")
        kinds = list(JobEvent.objects.filter(job=job, kind__startswith="shell").values_list("kind", flat=True))
        assert kinds == ["shell_open", "shell_end"]
        audited = AuditEvent.objects.filter(action__startswith="shell.").order_by("id")
        assert [(one.action, one.actor_id, one.facts["task"]) for one in audited] == [
            ("shell.open", ada.pk, "worker-0"),
            ("shell.end", ada.pk, "worker-0"),
        ]
        assert audited[1].facts["seconds"] >= 0

    def test_a_viewer_a_stranger_and_one_without_the_engine_may_not(self, world, ada, bob, monkeypatch):
        job = running(world, ada)
        with pytest.raises(NotFound):
            opened(bob, job)
        Membership.objects.create(namespace=Namespace.objects.get(owner=ada), user=bob, role="viewer")
        with pytest.raises(Forbidden, match="member"):
            opened(bob, job)
        Membership.objects.filter(user=bob).update(role="member")
        assert opened(bob, job)
        monkeypatch.setattr(shells, "why_not", lambda user, engine: Forbidden("Administrators alone use it.", ""))
        with pytest.raises(Forbidden, match="Administrators"):
            opened(bob, job)
        assert TaskShell.objects.count() == 1

    def test_not_where_a_program_of_the_portal_runs(self, world, ada):
        job = running(world, ada)
        Job.objects.filter(pk=job.pk).update(spec={**job.spec, "program": "predict"})
        with pytest.raises(Forbidden, match="programs"):
            opened(ada, job)

    def test_only_while_the_script_runs_or_the_task_is_held(self, world, ada):
        job = running(world, ada)
        for state in ("staging", "uploading", "ended"):
            said(job, state)
            with pytest.raises(Conflict, match="does not run"):
                opened(ada, job)
        said(job, "held")
        assert opened(ada, job)
        with pytest.raises(NotFound):
            opened(ada, job, index=7)

    def test_two_of_a_task_four_of_a_user_and_so_many_a_minute(self, world, ada, monkeypatch):
        jobs = [running(world, ada) for _ in range(3)]
        for job in (jobs[0], jobs[0]):
            opened(ada, job)
        with pytest.raises(Conflict, match="worker-0 has 2 open"):
            opened(ada, jobs[0])
        opened(ada, jobs[1])
        last = opened(ada, jobs[1])
        with pytest.raises(Conflict, match="You have 4 open"):
            opened(ada, jobs[2])
        TaskShell.objects.filter(pk=last.pk).update(user_until=timezone.now() - timedelta(seconds=1))
        opened(ada, jobs[2])
        assert shells.shells_sweep(timezone.now()) == 1
        assert TaskShell.objects.get(pk=last.pk).why == shells.LOST
        monkeypatch.setattr(shells, "MOST_PER_MINUTE", 5)
        with pytest.raises(Conflict, match="last minute"):
            opened(ada, jobs[2])


class TestRunner:
    def test_it_hears_of_terminals_in_the_answer_to_its_report_and_joins_once(self, world, ada):
        job = running(world, ada)
        shell = opened(ada, job)
        task = task_of(job)
        report = {"role": "worker", "index": 0, "state": "running"}
        answer = task.post("/api/v1/task/report/", report, format="json").json()
        flags = {"stop": False, "watched": False, "followed": False, "release": False}
        assert answer == {**flags, "shells": [{"id": str(shell.pk)}], "stacks": 0}
        shells.shell_join(identity(job), shell.pk, "worker", 0)
        assert task.post("/api/v1/task/report/", report, format="json").json()["shells"] == []
        with pytest.raises(NotFound):
            shells.shell_join(identity(job), shell.pk, "worker", 0)

    def test_no_other_task_joins_it(self, world, ada, bob):
        job, other = running(world, ada), running(world, bob)
        shell = opened(ada, job)
        for who, role, index in (
            (identity(other), "worker", 0),
            (identity(job, 2), "worker", 0),
            (identity(job), "worker", 1),
            (identity(job), "ps", 0),
        ):
            with pytest.raises(NotFound):
                shells.shell_join(who, shell.pk, role, index)
        shells.shell_end(shell.pk, "over")
        with pytest.raises(NotFound):
            shells.shell_join(identity(job), shell.pk, "worker", 0)

    def test_a_held_task_is_shown_and_released_for_this_start_alone(self, world, ada, bob, signed_in):
        job = running(world, ada)
        task = task_of(job)
        report = {"role": "worker", "index": 0, "restart": 0, "state": "held", "exit_code": 3, "held_until": 2e9}
        for _ in range(2):
            assert not task.post("/api/v1/task/report/", report, format="json").json()["release"]
        events = JobEvent.objects.filter(job=job, kind="task_held")
        assert [one.message for one in events] == ["Worker 0 failed (exit code 3) and is held open until 03:33 UTC."]
        address = f"/api/v1/jobs/{job.pk}/tasks/worker-0/release/"
        assert signed_in(bob).post(address).status_code == 404
        Membership.objects.create(namespace=Namespace.objects.get(owner=ada), user=bob, role="viewer")
        assert signed_in(bob).post(address).status_code == 403
        assert signed_in(ada).post(address).status_code == 202
        assert task.post("/api/v1/task/report/", report, format="json").json()["release"]
        again = report | {"restart": 1}
        assert not task.post("/api/v1/task/report/", again, format="json").json()["release"]
        said(job, "running")
        assert signed_in(ada).post(address).json()["code"] == "not_held"
        assert signed_in(ada).post(address.replace("worker-0", "nonsense")).status_code == 404


# --- The two sockets -----------------------------------------------------------------------------------------------


class Pair:
    """A user's socket and the runner's, joined."""

    def __init__(self, job: Job, shell: TaskShell, user: SocketClient, runner: SocketClient) -> None:
        self.job, self.shell, self.user, self.runner = job, shell, user, runner


def as_user(job: Job, secret: str, task: str = "worker-0", query: str = "") -> SocketClient:
    header = (b"authorization", f"Bearer {secret}".encode())
    return _opened(f"/ws/jobs/{job.pk}/tasks/{task}/shell/{query}", header)


def as_runner(job: Job, shell: uuid.UUID, where: str = "role=worker&index=0") -> SocketClient:
    header = (b"authorization", f"Bearer {token_of(job.pk, job.attempt)}".encode())
    return _opened(f"/ws/task/shells/{shell}/?{where}", header)


def _opened(address: str, header: tuple[bytes, bytes]) -> SocketClient:
    _SOCKETS.append(SocketClient(application, address, [header]))
    return _SOCKETS[-1]


async def said_by(socket: SocketClient) -> Any:
    message = await socket.receive_output()
    if message["type"] == "websocket.close":
        return message["code"]
    return json.loads(message["text"]) if message.get("text") else message["bytes"]


async def code_of(socket: SocketClient) -> int:
    for _ in range(500):
        said = await said_by(socket)
        if isinstance(said, int):
            return said
    raise AssertionError("the socket stays open")


async def put(socket: SocketClient, content: bytes | str | dict[str, Any]) -> None:
    if isinstance(content, bytes):
        await socket.send_input({"type": "websocket.receive", "bytes": content, "text": None})
    else:
        text = content if isinstance(content, str) else json.dumps(content)
        await socket.send_input({"type": "websocket.receive", "bytes": None, "text": text})


_SOCKETS: list[SocketClient] = []


@pytest.fixture
async def sockets(transactional_db) -> AsyncIterator[None]:
    """Has those that a test opens end before its rows are removed: one that asks the database then holds its tables."""
    yield
    for one in _SOCKETS:
        if not one.future.done():
            await one.disconnect()
    _SOCKETS.clear()


@pytest.fixture
def secret(sockets, ada) -> str:
    return token_create(user=ada, name="x", scopes=["jobs"], expires_in=None)[1]


@pytest.fixture
def job(world, ada) -> Job:
    return running(world, ada)


async def joined(job: Job, secret: str, *, command: bool = False) -> Pair:
    user = as_user(job, secret, query="?command=1" if command else "")
    assert await user.connect()
    assert await said_by(user) == {"state": "waiting"}
    shell = await TaskShell.objects.aget(ended_at__isnull=True)
    runner = as_runner(job, shell.pk, "role=worker&index=0" + "&command=1" * command)
    assert await runner.connect()
    assert await said_by(user) == {"state": "open"}
    return Pair(job, shell, user, runner)


async def test_bytes_sizes_and_what_was_read_pass_both_ways(job, secret):
    pair = await joined(job, secret)
    await put(pair.user, {"rows": 24, "columns": 80})
    await put(pair.user, b"ls\n")
    assert await said_by(pair.runner) == {"rows": 24, "columns": 80}
    assert await said_by(pair.runner) == b"ls\n"
    await put(pair.runner, {"read": 2 * cost(b"")})
    assert await said_by(pair.user) == {"read": 2 * cost(b"")}
    await put(pair.runner, b"\x00\xff")
    assert await said_by(pair.user) == b"\x00\xff"
    await put(pair.runner, {"ended": "The shell has ended.", "exit_code": 4})
    assert await said_by(pair.user) == {"ended": "The shell has ended.", "exit_code": 4}
    assert await said_by(pair.user) == 1000
    assert (await TaskShell.objects.aget()).why == "The shell has ended."


async def test_a_command_and_the_end_of_its_input_pass_and_are_written_down_as_a_terminal_is(job, secret):
    pair = await joined(job, secret, command=True)
    await put(pair.user, {"command": ["cat", "secret"]})
    await put(pair.user, b"in")
    await put(pair.user, {"input": None})
    assert [await said_by(pair.runner) for _ in range(3)] == [{"command": ["cat", "secret"]}, b"in", {"input": None}]
    await put(pair.runner, b"\x01out")
    assert await said_by(pair.user) == b"\x01out"
    await put(pair.runner, {"ended": "The command has ended.", "exit_code": 4})
    assert await said_by(pair.user) == {"ended": "The command has ended.", "exit_code": 4}
    assert await said_by(pair.user) == 1000
    audited = [one async for one in AuditEvent.objects.filter(action__startswith="shell.").order_by("id")]
    assert [(one.action, one.facts["command"]) for one in audited] == [("shell.open", True), ("shell.end", True)]
    messages = [one.message async for one in JobEvent.objects.filter(kind__startswith="shell").order_by("id")]
    assert messages[0] == "ada runs a command in Worker 0."
    assert "The command of ada in Worker 0 ended after" in messages[1]
    assert not any("secret" in f"{one}" for one in [*messages, *(one.facts for one in audited)])


async def test_a_runner_that_is_older_than_commands_does_not_open_a_terminal_in_its_place(job, secret):
    user = as_user(job, secret, query="?command=1")
    assert await user.connect()
    assert await said_by(user) == {"state": "waiting"}
    shell = await TaskShell.objects.aget()
    assert await database_sync_to_async(shells.shells_waiting)(job, "worker", 0, timezone.now()) == [
        {"id": str(shell.pk), "command": True}
    ]
    runner = as_runner(job, shell.pk)
    assert not await runner.connect()
    await user.disconnect()


@pytest.mark.parametrize(("command", "bad"), [(True, {"rows": 1, "columns": 1}), (False, {"command": ["ls"]})])
async def test_what_is_of_the_other_kind_is_refused(job, secret, command, bad):
    pair = await joined(job, secret, command=command)
    await put(pair.user, bad)
    assert await code_of(pair.user) == await code_of(pair.runner) == 4400


async def test_a_command_that_prints_is_kept_and_one_that_does_not_is_not(job, secret, monkeypatch):
    monkeypatch.setattr(shell_sockets, "LOOK_EVERY", 0.05)
    now = [time.monotonic()]
    monkeypatch.setattr(shell_sockets, "time", SimpleNamespace(monotonic=lambda: now[0]))
    pair = await joined(job, secret, command=True)
    for _ in range(8):
        now[0] += 0.6 * shell_sockets.IDLE
        await asyncio.sleep(0.1)  # some looks
        await put(pair.runner, b"\x01.")
        assert await said_by(pair.user) == b"\x01."
    now[0] += 2 * shell_sockets.IDLE
    assert await code_of(pair.user) == 1000
    assert "Nothing was read or printed" in (await TaskShell.objects.aget()).why


async def test_who_closes_it_ends_it(job, secret):
    pair = await joined(job, secret)
    await pair.user.disconnect()
    assert await code_of(pair.runner) == 1000
    assert (await TaskShell.objects.aget()).why == "It was closed."


@pytest.mark.parametrize(
    "bad",
    ["nonsense", "[]", {"rows": 10**9, "columns": 1}, {"read": 5}, {"ended": 7}, b"x" * 20_000, "[" * 10_000],
    ids=str,
)
async def test_a_runner_that_sends_anything_else_is_cut_off(job, secret, bad):
    pair = await joined(job, secret)
    await put(pair.runner, bad)
    assert await code_of(pair.runner) == 4400
    assert await code_of(pair.user) == 4400


async def test_a_user_may_not_end_it_in_the_name_of_the_task(job, secret):
    pair = await joined(job, secret)
    await put(pair.user, {"ended": "The shell has ended.", "exit_code": 0})
    assert await code_of(pair.user) == 4400


@pytest.mark.parametrize("who", ["user", "runner"])
async def test_who_sends_more_than_the_other_reads_is_cut_off(job, secret, who):
    pair = await joined(job, secret)
    sender = getattr(pair, who)
    for _ in range(2 * WINDOW // cost(b"x" * 16_000)):
        await put(sender, b"x" * 16_000)
    assert await code_of(pair.user) == await code_of(pair.runner) == 4400
    assert "More was sent" in (await TaskShell.objects.aget()).why


async def test_a_message_that_was_lost_ends_it(job, secret, monkeypatch):
    pair = await joined(job, secret)
    monkeypatch.setattr(shell_sockets.End, "tell", _losing(shell_sockets.End.tell))
    await put(pair.runner, b"lost")
    await put(pair.runner, b"comes")
    assert await code_of(pair.user) == 1013


def _losing(tell: Any) -> Any:
    async def lose(self: Any, **message: Any) -> None:
        if message.get("content") == b"lost":
            self._sent_count += 1
        else:
            await tell(self, **message)

    return lose


async def test_who_is_locked_out_is_cut_off(job, secret, ada, admin, monkeypatch):
    monkeypatch.setattr(shell_sockets, "LOOK_EVERY", 0.05)
    pair = await joined(job, secret)
    await database_sync_to_async(user_change)(user=ada, actor=admin, is_active=False)
    assert await code_of(pair.user) == 4401
    assert await code_of(pair.runner) == 4401


async def test_a_lost_role_ends_it_at_the_next_look(job, secret, ada, monkeypatch):
    monkeypatch.setattr(shell_sockets, "LOOK_EVERY", 0.05)
    pair = await joined(job, secret)
    await Membership.objects.filter(user=ada).aupdate(role="viewer")
    assert await code_of(pair.user) == 4403


async def test_one_who_types_nothing_is_not_kept(job, secret, monkeypatch):
    monkeypatch.setattr(shell_sockets, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(shell_sockets, "IDLE", 0.1)
    pair = await joined(job, secret)
    assert await code_of(pair.user) == 1000
    assert "Nothing was typed" in (await TaskShell.objects.aget()).why


async def test_a_task_that_does_not_come_is_not_waited_for(job, secret, monkeypatch):
    monkeypatch.setattr(shell_sockets, "JOIN_PATIENCE", 0.1)
    user = as_user(job, secret)
    assert await user.connect()
    await said_by(user)
    assert "did not answer" in (await said_by(user))["ended"]
    assert await said_by(user) == 1000


async def test_refusals_say_why(job, ada, bob):
    async def refused(user: User, scopes: list[str], task: str = "worker-0") -> tuple[str, int]:
        _, secret = await database_sync_to_async(token_create)(user=user, name="x", scopes=scopes, expires_in=None)
        socket = as_user(job, secret, task)
        assert await socket.connect()
        return (await said_by(socket))["ended"], await said_by(socket)

    assert (await refused(ada, ["read"]))[1] == 4401
    assert (await refused(ada, ["data"]))[1] == 4401
    assert (await refused(bob, []))[1] == 4404
    assert (await refused(ada, [], "worker-9"))[1] == 4404
    await Membership.objects.acreate(namespace=await Namespace.objects.aget(owner=ada), user=bob, role="viewer")
    words, code = await refused(bob, [])
    assert code == 4403
    assert "role member" in words


async def test_a_runner_opens_nothing_that_is_not_its_own(job, world, secret, bob):
    other = await database_sync_to_async(running)(world, bob)
    user = as_user(job, secret)
    assert await user.connect()
    await said_by(user)
    shell = await TaskShell.objects.aget()
    for foreign in (
        as_runner(other, shell.pk),
        as_runner(job, uuid.uuid4()),
        as_runner(job, shell.pk, "role=worker&index=1"),
        as_runner(job, shell.pk, "role=worker&index=-1"),
        as_runner(job, shell.pk, ""),
        SocketClient(application, f"/ws/task/shells/{shell.pk}/?role=worker&index=0", []),
        SocketClient(
            application, f"/ws/task/shells/{shell.pk}/?role=worker&index=0",
            [(b"authorization", f"Bearer {secret}".encode())],
        ),
    ):  # fmt: skip
        assert not await foreign.connect()
    assert await as_runner(job, shell.pk).connect()
