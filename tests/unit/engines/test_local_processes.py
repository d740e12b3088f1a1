"""Which process belongs to which task, told from a table that is made up here and from the real one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from yardmaster.engines.supervision.processes import (
    ProcessId,
    Row,
    boot_id,
    descendants,
    identify,
    members,
    memory_at_most,
    memory_of,
    table,
)

HERE = os.getpid()
LEADER = ProcessId(4_100_000, 50, boot_id())


def row(pid: int, parent: int = 1, session: int = 1, started: int = 100, state: str = "S", resident: int = 10) -> Row:
    return Row(pid, parent, session, started, state, resident)


def pids(rows: list[Row], leader: ProcessId | None = LEADER) -> list[int]:
    return [one.pid for one in members({one.pid: one for one in rows}, leader, b"mark")]


def test_the_session_and_all_below_it_belong():
    leader = row(LEADER.pid, session=LEADER.pid, started=50)
    peer = row(4_100_002, session=LEADER.pid)
    below = row(4_100_001, parent=4_100_002, session=7)
    assert pids([below, peer, leader, row(4_100_009)]) == [LEADER.pid, 4_100_001, 4_100_002]


def test_what_the_leader_left_behind_belongs():
    assert pids([row(4_100_002, session=LEADER.pid)]) == [4_100_002]


def test_nothing_belongs_to_a_leader_whose_pid_has_come_round():
    another = row(LEADER.pid, session=LEADER.pid, started=51)
    assert pids([another, row(4_100_002, session=LEADER.pid)]) == []
    assert pids([row(4_100_002, session=LEADER.pid, started=49)]) == []
    assert pids([row(4_100_002, session=LEADER.pid)], ProcessId(LEADER.pid, 50, "another boot")) == []


def test_the_dead_do_not_count_and_neither_do_we():
    zombie = row(LEADER.pid, session=LEADER.pid, started=50, state="Z")
    assert pids([zombie, row(HERE, session=LEADER.pid)]) == []


def test_descendants_of_a_loop_end():
    rows = {1: row(1, parent=2), 2: row(2, parent=1)}
    assert descendants(rows, [1, 99]) == {1, 2}


def test_a_process_is_itself_and_no_longer_when_it_is_gone():
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        known = identify(child.pid)
        assert known is not None
        assert known.is_alive()
        assert not ProcessId(known.pid, known.started + 1, known.boot).is_alive()
        assert not ProcessId(known.pid, known.started, "another boot").is_alive()
        known.signal(signal.SIGKILL)
        child.wait()
        assert not known.is_alive()
        known.signal(signal.SIGKILL)
    assert identify(child.pid) is None


def test_a_mark_in_the_environment_is_found_whole():
    command = [sys.executable, "-S", "-c", "print(flush=True); input()"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"YARDMASTER_WORK_DIR": "/a/worker-1"},
        start_new_session=True,
    ) as child:
        child.stdout.readline()
        found = [one.pid for one in members(table(), None, b"/a/worker-1")]
        assert found == [child.pid]
        assert members(table(), None, b"/a/worker-10") == []
        assert members(table(), None, b"/a/worker") == []
        child.kill()


def test_memory_is_summed_in_full_or_shared_fairly():
    me = table()[HERE]
    assert memory_at_most([me, me]) == 2 * me.resident
    assert 0 < memory_of([me]) <= me.resident
