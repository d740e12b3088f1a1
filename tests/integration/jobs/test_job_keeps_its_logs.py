"""What is left of a job when its tasks are gone: every log, of every task and every attempt."""

from __future__ import annotations

import pytest

from apps.jobs import services
from apps.jobs.state.task_auth import TaskIdentity
from apps.jobs.task_api.orders import order_for
from apps.jobs.worker import archive
from apps.stores import log_store
from yardmaster.job.spec import Role
from yardmaster.job.spec_json import spec_from_json
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.logs.keys import StreamKey
from yardmaster_runner.exits import CUT_OFF


def write(job, role: Role, index: int, *lines: str) -> StreamKey:
    stream = StreamKey(job.pk, job.attempt, role, index)
    text = "".join(f"{line}\n" for line in lines).encode()
    log_store().append(stream, log_store().next_line(stream), text, [(0, 1)])
    return stream


def text_of(stream: StreamKey) -> list[bytes]:
    return [line.text for line in log_store().read(stream, 0, 100).lines]


def test_releasing_parameter_servers_keeps_their_logs_trainer_661(world, ada):
    job = world.launch(ada)
    world.settle()
    stream = write(job, Role.PS, 0, "serves variables")
    world.engine.succeed(job)
    world.until_quiet()
    assert not world.engine.has(job)
    assert text_of(stream) == [b"serves variables"]


def test_after_a_failure_every_task_is_left_to_inspect_trainer_903(world, ada):
    job = world.launch(ada)
    world.settle()
    streams = [write(job, role, index, f"{role}-{index}") for role, index in spec_from_json(job.spec).tasks()]
    world.engine.set(job, Role.WORKER, 1, TaskPhase.FAILED, exit_code=1, finished_at=world.now)
    world.until_quiet()
    assert world.again(job).phase == "FAILED"
    assert [text_of(stream) for stream in streams] == [[b"worker-0"], [b"worker-1"], [b"ps-0"]]


def test_the_log_of_a_restarted_task_begins_with_its_first_life_mcp_server_42(world, ada):
    """The logs of crash-looped pods came back empty: only the newest start was looked at."""
    job = world.launch(ada)
    world.settle()
    write(job, Role.WORKER, 0, "first life", "Traceback")
    world.engine.set(job, Role.WORKER, 0, TaskPhase.RUNNING, restarts=1)
    stream = write(world.look(job), Role.WORKER, 0, "second life")
    assert text_of(stream) == [b"first life", b"Traceback", b"second life"]


@pytest.mark.parametrize("servers", [1, 3])
def test_a_retry_may_have_another_number_of_parameter_servers_trainer_2070(world, ada, servers):
    job = world.launch(ada)
    world.settle()
    stream = write(job, Role.WORKER, 0, "attempt 1")
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, exit_code=1, finished_at=world.now)
    world.until_quiet()
    changed = job.spec | {"roles": job.spec["roles"] | {"ps": {"replicas": servers, "cpu": 1, "memory": "1Gi"}}}
    services.job_retry(user=ada, job=world.again(job), spec=spec_from_json(changed))
    world.until_running(job)
    job = world.again(job)
    assert world.engine.alive(job) == sorted(["worker-0", "worker-1", *(f"ps-{n}" for n in range(servers))])
    world.engine.succeed(job)
    world.until_quiet()
    assert world.again(job).phase == "SUCCEEDED"
    assert text_of(stream) == [b"attempt 1"]


def test_a_killed_task_has_a_mark_where_lines_may_be_missing(world, ada):
    """Its runner died with it, as in a pod of which the kernel kills everything at once."""
    job = world.launch(ada)
    world.settle()
    killed, ended, said = (
        write(job, Role.WORKER, 0, "a"),
        write(job, Role.WORKER, 1, "b"),
        write(job, Role.PS, 0, "c"),
    )
    log_store().mark_end(said, 1)
    order = order_for(TaskIdentity(job.pk, 1, job.namespace_id), "worker", 0)
    assert order["was_cut_off"], "to its next start"
    assert not order_for(TaskIdentity(job.pk, 1, job.namespace_id), "ps", 0)["was_cut_off"]
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, exit_code=137, reason="OutOfMemory", finished_at=world.now)
    world.engine.set(job, Role.WORKER, 1, TaskPhase.FAILED, exit_code=1, finished_at=world.now)
    world.engine.set(job, Role.PS, 0, TaskPhase.FAILED, exit_code=137, finished_at=world.now)
    world.until_quiet()
    assert text_of(killed) == [b"a", CUT_OFF.encode()]
    assert (text_of(ended), text_of(said)) == ([b"b"], [b"c"])
    assert log_store().head(killed).ended
    archive.keep_outputs(world.again(job), spec_from_json(job.spec), world.engine)
    assert text_of(killed) == [b"a", CUT_OFF.encode()], "once"
