"""What tells that a task was lost without which the others cannot go on, from raw objects alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.core.generators import make_spec
from tests.unit.engines.kubernetes_objects import container, owner, pod, terminated, workload
from yardmaster.engines.kubernetes.observe.facts import Seen, due_in, observation_of
from yardmaster.engines.kubernetes.observe.gang_restart import Due
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.record import GANG_RESTARTS, RECORD, GangRestarts
from yardmaster.job.spec import Role, Strategy
from yardmaster.lifecycle.phases import TaskPhase

SPEC = make_spec(Strategy.PARAMETER_SERVER, retries=2)
EARLY, LATER, MUCH_LATER = "2026-11-20T12:00:00Z", "2026-11-20T12:00:50Z", "2026-11-20T12:30:00Z"
Raw = dict[str, Any]


def running(role: Role, index: int = 0, *, made: str = EARLY, uid: str = "", restarts: int = 0, **more: Any) -> Raw:
    found = pod(role, index, "Running", containerStatuses=container(state={"running": {"startedAt": EARLY}}))
    found["status"]["containerStatuses"][0]["restartCount"] = restarts
    found["metadata"] |= {"uid": uid or f"{role.value}-{index}-of-{made}", "creationTimestamp": made, **more}
    return found


def seen(*pods: Raw, note: GangRestarts | None = None, status: Raw | None = None) -> Seen:
    found = owner(SPEC)
    if note is not None:
        found["data"][GANG_RESTARTS] = note.to_json()
    made = [workload(role, SPEC.retries, **(status or {} if role is Role.CHIEF else {})) for role in SPEC.roles]
    return Seen(found, made, pods)


CHIEF, WORKER, SERVER = running(Role.CHIEF), running(Role.WORKER), running(Role.PS)

FAILED = pod(Role.PS, 0, "Failed")
FAILED["metadata"]["uid"] = "failed"

NOTHING = [
    ("all run", [CHIEF, WORKER, SERVER]),
    ("nothing was made yet", []),
    ("a server that was made a little after its chief began", [CHIEF, running(Role.PS, made=LATER)]),
    ("a worker that is leaving", [CHIEF, SERVER, running(Role.WORKER, deletionTimestamp=LATER)]),
    ("a worker that was made late", [CHIEF, SERVER, running(Role.WORKER, made=MUCH_LATER)]),
]  # fmt: skip
LOSSES = [
    ("a server that is leaving", [CHIEF, WORKER, running(Role.PS, deletionTimestamp=LATER)]),
    ("a server that was started again", [CHIEF, WORKER, running(Role.PS, restarts=1)]),
    ("a server that takes the place of one that the chief knew", [CHIEF, WORKER, running(Role.PS, made=MUCH_LATER)]),
    ("a server that failed", [CHIEF, WORKER, FAILED]),
    ("a chief that is leaving", [running(Role.CHIEF, deletionTimestamp=LATER), WORKER, SERVER]),
    ("a chief that its Job made again", [pod(Role.CHIEF, 0, "Running", failures=1), WORKER, SERVER]),
]  # fmt: skip


@pytest.mark.parametrize("pods", [row[1] for row in NOTHING], ids=[row[0] for row in NOTHING])
def test_no_loss(pods: list[Raw]):
    assert due_in(seen(*pods)) is None
    assert not observation_of(seen(*pods)).to_restart


@pytest.mark.parametrize("pods", [row[1] for row in LOSSES], ids=[row[0] for row in LOSSES])
def test_a_loss_is_due_and_no_more_when_it_is_noted_and_done(pods: list[Raw]):
    assert observation_of(seen(*pods)).to_restart
    found = due_in(seen(*pods))
    assert found is not None
    assert found.new
    assert not any("deletionTimestamp" in one["metadata"] for one in found.pods)
    gone = [one for one in pods if one not in found.pods]
    assert due_in(seen(*gone, note=found.note)) is None


def test_what_was_made_since_is_left_alone():
    note = GangRestarts(count=1, stale=frozenset({"old"}))
    old, new = running(Role.PS, uid="old"), running(Role.WORKER, uid="new")
    found = due_in(seen(CHIEF, old, new, note=note))
    assert found is not None
    assert not found.new
    assert found.pods == (old,)
    assert due_in(seen(CHIEF, running(Role.PS, uid="old", deletionTimestamp=LATER), new, note=note)) is None


def test_a_chief_that_was_removed_by_force_is_told_by_its_jobs_count():
    pods = [WORKER, SERVER]
    found = due_in(seen(*pods, status={"failed": 1}))
    assert found is not None
    again = pod(Role.CHIEF, 0, "Running", failures=1)
    assert due_in(seen(again, note=found.note, status={"failed": 1})) is None


def test_a_chief_that_was_not_made_yet_when_a_server_was_lost_is_missed_when_it_is_lost_itself():
    first = due_in(seen(WORKER, running(Role.PS, restarts=1)))
    assert first is not None
    again = [pod(Role.CHIEF, 0, "Running", failures=1), running(Role.PS, uid="new"), running(Role.WORKER, uid="newer")]
    assert due_in(seen(*again, note=first.note, status={"failed": 1})) is not None


def test_a_member_that_comes_back_late_is_missed_when_it_is_lost_again():
    spec = make_spec(Strategy.MULTI_WORKER_MIRRORED, retries=3)

    def due_of(*pods: Raw, note: GangRestarts, failed: int) -> Due | None:
        found = owner(spec)
        found["data"][GANG_RESTARTS] = note.to_json()
        return due_in(Seen(found, [workload(Role.WORKER, 3, failed=failed)], pods))

    crashed = pod(Role.WORKER, 0, "Failed", failures=1)
    found = due_of(crashed, note=GangRestarts(1, lives={"worker/0": 1, "worker/1": 1}), failed=2)
    assert found is not None
    back = pod(Role.WORKER, 1, "Failed")
    back["metadata"]["annotations"][names.JOB_IGNORED_FAILURES] = "1"
    assert due_of(pod(Role.WORKER, 0, "Running", failures=2), back, note=found.note, failed=3) is not None


def test_a_task_that_failed_for_good_keeps_its_reason_though_all_were_to_start_anew():
    broken = pod(Role.CHIEF, 0, "Failed", failures=2, containerStatuses=terminated(1, message="ValueError: boom"))
    broken["metadata"]["uid"] = "broken"
    note = GangRestarts(count=1, lives={"chief/0": 3}, stale=frozenset({"broken"}))
    task = observation_of(seen(broken, WORKER, SERVER, note=note)).tasks[0]
    assert (task.phase, task.reason) == (TaskPhase.FAILED, "ScriptFailed")
    assert "boom" in task.message


def test_a_run_of_an_earlier_version_is_left_as_it_is():
    found = seen(CHIEF, running(Role.PS, restarts=1))
    record = json.loads(found.owner["data"][RECORD])
    del record["strategy"]
    found.owner["data"][RECORD] = json.dumps(record)
    assert due_in(found) is None
