"""Every line reaches the portal once, in order, whatever happens in between."""

import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.runner.memory_log import ANOTHER, BETWEEN, MemoryLog
from yardmaster_runner.lines import LineCutter
from yardmaster_runner.patience import Haste, Patience
from yardmaster_runner.shipper import BACKLOG_BYTES, FULL_PAUSE, PAUSE, TAIL_BYTES, Shipper, ShipperThread
from yardmaster_runner.spool import Spool

MIB = 1 << 20


def ship_all(shipper: Shipper, steps: int = 1000) -> None:
    for _ in range(steps):
        if shipper.is_done:
            return
        shipper.step()
    raise AssertionError("it never ends")


def shipped(spool: Spool, log: MemoryLog) -> list:
    ship_all(Shipper(spool, log))
    return log.lines


def test_a_fresh_spool_goes_on_where_the_portals_log_ends(tmp_path):
    log, spool = MemoryLog(), Spool(str(tmp_path), MIB)
    log.add(ANOTHER, [b"of an earlier start"] * 7)
    spool.append(b"a\nb\n", 0)
    assert shipped(spool, log)[7:] == [b"a", b"b"]
    spool.close()


def test_a_portal_that_was_away_at_the_start_gets_everything_when_it_is_back(tmp_path):
    log, spool = MemoryLog(["away"] * 5), Spool(str(tmp_path), MIB)
    log.add(ANOTHER, [b"old"])
    spool.append(b"a\n", 0)
    shipper = Shipper(spool, log)
    for _ in range(5):
        assert shipper.step() > 0
        spool.append(b"more\n", 1)
    assert shipper.trouble == "away"
    ship_all(shipper)
    assert log.lines == [b"old", b"a", *[b"more"] * 5]
    spool.close()


def test_delays_grow_to_fifteen_seconds_and_not_beyond(tmp_path):
    log, spool = MemoryLog(["away"] * 20), Spool(str(tmp_path), MIB)
    spool.append(b"a\n", 0)
    shipper = Shipper(spool, log)
    delays = [shipper.step() for _ in range(20)]
    assert delays[0] < 0.3
    assert 11 < delays[-1] <= 15
    spool.close()


def test_a_lost_answer_doubles_nothing(tmp_path):
    log, spool = MemoryLog(["", "lost"]), Spool(str(tmp_path), MIB)
    spool.append(b"a\nb\n", 0)
    assert shipped(spool, log) == [b"a", b"b"]
    spool.close()


def test_a_portal_that_forgot_lines_gets_them_again(tmp_path):
    log, spool = MemoryLog(), Spool(str(tmp_path), MIB)
    shipper = Shipper(spool, log)
    spool.append(b"a\nb\n", 0)
    ship_all(shipper)
    log.forget(1)
    spool.append(b"c\n", 0)
    ship_all(shipper)
    assert log.lines == [b"a", b"b", b"c"]
    spool.close()


def test_a_portal_that_begins_anew_is_followed(tmp_path):
    log, spool = MemoryLog(), Spool(str(tmp_path), MIB)
    log.add(ANOTHER, [b"old"] * 50)
    shipper = Shipper(spool, log)
    spool.append(b"a\n", 0)
    ship_all(shipper)
    log.forget(0)
    spool.append(b"b\n", 0)
    ship_all(shipper)
    assert log.lines == [b"b"]
    spool.close()


def test_lines_that_the_dead_process_sent_but_the_disk_lost_do_not_hide_new_ones(tmp_path):
    """After a power cut the spool may know less than the portal: new lines are numbered after the portal's."""
    first = Spool(str(tmp_path / "a"), MIB)
    first.append(b"a\n", 0)
    log = MemoryLog()
    Shipper(first, log).step()
    first.save()
    first.append(b"b\n", 0)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    first.append(b"c\nd\n", 0)
    ship_all(Shipper(first, log))
    heir = Spool(str(tmp_path / "b"), MIB)
    heir.append(b"new\n", 0)
    assert shipped(heir, log) == [b"a", b"b", b"c", b"d", b"new"]
    first.close()
    heir.close()


def test_a_pod_that_is_still_ending_hides_no_line_of_its_successor(tmp_path):
    """Both have asked where the log goes on before either has written."""
    log = MemoryLog()
    spools = [Spool(str(tmp_path / name), MIB) for name in ("old", "new")]
    old, new = (Shipper(spool, log) for spool in spools)
    old.step()
    new.step()
    for round_ in (b"1", b"2"):
        spools[0].append(b"old %s\nold too %s\n" % (round_, round_), 0)
        spools[1].append(b"new %s\n" % round_, 0)
        ship_all(old)
        ship_all(new)
    assert log.lines == [b"old 1", b"old too 1", b"new 1", b"old 2", b"old too 2", b"new 2"]
    for spool in spools:
        spool.close()


@pytest.mark.parametrize("trouble", ["away", "lost", "another"])
def test_a_second_trouble_after_another_writer_doubles_nothing(tmp_path, trouble):
    """Where our lines ended under the old numbers says nothing of those under the new ones."""
    # Three lines go; then two of another's; the write is refused, the place asked, and the next write meets trouble.
    log, spool = MemoryLog(["", "", "", "", trouble]), Spool(str(tmp_path), MIB)
    shipper = Shipper(spool, log)
    spool.append(b"a0\na1\na2\n", 0)
    ship_all(shipper)
    log.add(ANOTHER, [BETWEEN] * 2)
    spool.append(b"a3\na4\n", 0)
    ship_all(shipper)
    assert [line for line in log.lines if line != BETWEEN] == [b"a0", b"a1", b"a2", b"a3", b"a4"]
    assert shipper.send_end() == 0
    assert log.end == len(log.lines)
    spool.close()


def test_a_successor_whose_predecessor_could_not_save_its_new_numbers_loses_no_line(tmp_path):
    log, spool = MemoryLog(), Spool(str(tmp_path / "a"), MIB)
    shipper = Shipper(spool, log)
    spool.append(b"a0\na1\na2\n", 0)
    ship_all(shipper)
    spool.save()
    shutil.copy(tmp_path / "a" / "state.json", tmp_path / "state.json")
    log.add(ANOTHER, [BETWEEN] * 2)
    spool.append(b"a3\n", 0)
    ship_all(shipper)
    spool.append(b"a4\na5\n", 0)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.copy(tmp_path / "state.json", tmp_path / "b" / "state.json")
    heir = Spool(str(tmp_path / "b"), MIB)
    lines = [line for line in shipped(heir, log) if line != BETWEEN]
    assert lines in ([b"a0", b"a1", b"a2", b"a3", b"a3", b"a4", b"a5"], [b"a0", b"a1", b"a2", b"a3", b"a4", b"a5"])
    spool.close()
    heir.close()


def test_what_was_dropped_is_marked_and_numbering_stays_right(tmp_path):
    log, spool = MemoryLog(), Spool(str(tmp_path), 256 << 10)
    for i in range(2000):
        spool.append(b"%d %s\n" % (i, b"x" * 500), i)
    lines = shipped(spool, log)
    assert len(lines) == 2000
    assert len(log.gaps) == 1
    kept = [(number, line) for number, line in enumerate(lines) if line is not None]
    assert kept
    assert all(line.startswith(b"%d " % number) for number, line in kept)
    assert log.gaps[0][2] == sum(len(b"%d %s\n" % (i, b"x" * 500)) for i in range(log.gaps[0][1]))
    spool.close()


def test_a_batch_too_large_for_the_portal_is_made_smaller(tmp_path):
    log, spool = MemoryLog(), Spool(str(tmp_path), 64 * MIB)
    log.most_bytes = 200_000
    spool.append(b"".join(b"%099d\n" % i for i in range(20_000)), 0)
    assert shipped(spool, log) == [b"%099d" % i for i in range(20_000)]
    spool.close()


def test_lines_that_the_portal_will_never_take_do_not_hold_back_the_rest(tmp_path):
    log, spool = MemoryLog(), Spool(str(tmp_path), MIB)
    spool.append(b"bad\n", 0)
    log.refuse_with = 422
    shipper = Shipper(spool, log)
    for _ in range(4):
        shipper.step()
    log.refuse_with = 0
    spool.append(b"good\n", 0)
    ship_all(shipper)
    assert log.lines == [None, b"good"]
    assert log.gaps == [(0, 1, 4)]
    spool.close()


def test_the_end_is_said_with_the_portals_numbers(tmp_path):
    log, spool = MemoryLog(), Spool(str(tmp_path), MIB)
    log.add(ANOTHER, [b"old"] * 3)
    shipper = Shipper(spool, log)
    assert shipper.send_end() == 0
    assert log.end == 3
    spool.append(b"a\n", 0)
    ship_all(shipper)
    shipper.send_end()
    assert log.end == 4
    spool.close()


@contextmanager
def shipping(spool, log):
    """A thread that ships, ended and joined in the end."""
    thread = ShipperThread(spool, log, Patience(60, Haste()))
    thread.start()
    try:
        yield thread
    finally:
        thread.no_more_lines()
        thread.join(10)
        assert not thread.is_alive()
        spool.close()


def seconds_until(condition, at_most=10.0):
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < at_most
        time.sleep(0.005)
    return time.monotonic() - begun


def test_a_script_that_prints_a_few_lines_a_second_costs_no_message_per_line(tmp_path):
    log, spool = MemoryLog(), Spool(str(tmp_path), MIB)
    with shipping(spool, log):
        begun = time.monotonic()
        for number in range(40):
            spool.append(b"%d\n" % number, number)
            time.sleep(0.03)
        took = time.monotonic() - begun
        assert log.calls.count("write") <= took / PAUSE + 1
    assert log.lines == [b"%d" % number for number in range(40)]


@pytest.fixture
def long_pause(monkeypatch) -> float:
    """Seconds, and so many that a busy machine cannot be taken for a pause."""
    monkeypatch.setattr("yardmaster_runner.shipper.PAUSE", 10.0)
    return 10.0


def test_the_first_line_after_a_quiet_while_goes_at_once(tmp_path, long_pause):
    log, spool = MemoryLog(), Spool(str(tmp_path), MIB)
    with shipping(spool, log):
        spool.append(b"a\n", 0)
        assert seconds_until(lambda: log.lines == [b"a"]) < long_pause / 2
        time.sleep(1.2 * long_pause)
        spool.append(b"b\n", 0)
        assert seconds_until(lambda: log.lines == [b"a", b"b"]) < long_pause / 2


def test_a_backlog_does_not_wait_for_the_pause_that_it_comes_upon(tmp_path, long_pause):
    log, spool = MemoryLog(), Spool(str(tmp_path), 64 * MIB)
    with shipping(spool, log):
        spool.append(b"a\n", 0)
        seconds_until(lambda: bool(log.lines))
        spool.append(b"%099d\n" % 0 * (40 * BACKLOG_BYTES // 100), 0)
        assert seconds_until(lambda: len(log.lines) > 1) < long_pause / 2
        seconds_until(lambda: spool.waiting_bytes < BACKLOG_BYTES)
        assert log.calls.count("write") >= 10


def test_the_end_of_the_task_is_not_slept_through(tmp_path, long_pause):
    log, spool = MemoryLog(), Spool(str(tmp_path), MIB)
    with shipping(spool, log) as thread:
        spool.append(b"a\n", 0)
        seconds_until(lambda: bool(log.lines))
        spool.append(b"b\n", 0)
        thread.no_more_lines()
        assert seconds_until(lambda: not thread.is_alive()) < long_pause / 2
    assert log.lines == [b"a", b"b"]
    assert log.end == 2


def test_troubles_at_the_end_are_no_busy_loop(tmp_path):
    log, spool = MemoryLog(["", ""] + ["away"] * 3), Spool(str(tmp_path), MIB)
    with shipping(spool, log) as thread:
        spool.append(b"a\n", 0)
        seconds_until(lambda: bool(log.lines))
        begun = time.monotonic()
        spool.append(b"b\n", 0)
        thread.no_more_lines()
        seconds_until(lambda: not thread.is_alive())
        assert time.monotonic() - begun > 0.1
    assert log.lines == [b"a", b"b"]


def test_a_full_log_is_told_how_many_lines_it_misses_and_gets_the_last_ones(tmp_path):
    log, spool = MemoryLog(), Spool(str(tmp_path), 64 * MIB)
    log.limit = 100
    shipper = Shipper(spool, log)
    printed = [b"%06d %s" % (number, b"x" * 92) for number in range(60_000)]
    for first in range(0, len(printed), 100):
        spool.append(b"".join(line + b"\n" for line in printed[first : first + 100]), first)
        if first % 10_000 == 0:
            shipper.step()
    assert shipper.full
    shipper.is_last = True
    ship_all(shipper)
    assert len(log.lines) == len(printed)
    kept = [number for number, line in enumerate(log.lines) if line is not None]
    assert [log.lines[number] for number in kept] == [printed[number] for number in kept]
    assert kept[:100] == [*range(100)]
    assert kept[100:] == [*range(kept[100], len(printed))], "the tail is whole"
    assert TAIL_BYTES - 1000 < 100 * len(kept[100:]) < TAIL_BYTES + 1000
    assert sum(size for _, _, size in log.gaps) == 100 * (len(printed) - len(kept))
    spool.close()


def test_a_full_log_gets_few_messages_and_a_log_with_room_again_gets_lines(tmp_path):
    log, spool = MemoryLog(), Spool(str(tmp_path), 64 * MIB)
    log.limit = 1
    shipper = Shipper(spool, log)
    spool.append(b"first\n", 0)
    shipper.step()
    spool.append(b"second\n", 0)
    shipper.step()
    sent = len(log.calls)
    assert shipper.step() == FULL_PAUSE
    assert len(log.calls) == sent, "the newest lines are held back, and nothing else is there to say"
    spool.append(b"%099d\n" % 0 * 1000, 0)
    log.limit = 1 << 40
    shipper.step()
    assert not shipper.full
    ship_all(shipper)
    assert log.lines[0] == b"first"
    assert len(log.lines) == 1002
    assert sum(lines for _, lines, _ in log.gaps) == log.lines.count(None) > 0
    spool.close()


ACTIONS = st.one_of(
    st.tuples(st.just("print"), st.lists(st.integers(0, 400), max_size=8)),
    st.tuples(st.just("ship"), st.integers(1, 4)),
    st.tuples(st.just("another"), st.integers(1, 4)),
    st.tuples(st.sampled_from(["killed", "restarted"]), st.just(0)),
)
TROUBLES = st.lists(st.sampled_from(["", "", "", "away", "lost"]), max_size=60)
WITH_OTHERS = st.lists(st.sampled_from(["", "", "", "away", "lost", "another", "another"]), max_size=60)


def play(actions, troubles, limit, seam):
    """Perform the actions; (what was printed, the log). `seam` shifts where chunks end."""
    with tempfile.TemporaryDirectory() as folder:
        log, printed, generation = MemoryLog(troubles), [], 0
        spool = Spool(f"{folder}/0", limit)
        shipper, cutter = Shipper(spool, log), LineCutter(1 << 16)
        for action, value in actions:
            if action == "print":
                lines = [b"%d %s" % (len(printed) + i, b"x" * size) for i, size in enumerate(value)]
                printed += lines
                text = b"".join(line + b"\n" for line in lines)
                for chunk in (text[:seam], text[seam:]):
                    spool.append(cutter.feed(chunk), len(printed))
            elif action == "ship":
                for _ in range(value):
                    shipper.step()
            elif action == "another":
                log.add(ANOTHER, [BETWEEN] * value)
            else:
                generation += 1
                if action == "restarted":
                    spool.close()
                shutil.copytree(f"{folder}/{generation - 1}", f"{folder}/{generation}")
                if action == "killed":
                    spool.close()
                spool = Spool(f"{folder}/{generation}", limit)
                shipper = Shipper(spool, log)
        ship_all(shipper)
        spool.close()
        assert not list(Path(folder, str(generation)).glob("*.log"))
        return printed, log


@settings(max_examples=150, deadline=None)
@given(st.lists(ACTIONS, max_size=30), WITH_OTHERS, st.integers(0, 700))
def test_random_chunks_outages_restarts_and_other_writers_lose_and_double_no_line(actions, troubles, seam):
    printed, log = play(actions, troubles, 64 * MIB, seam)
    assert [line for line in log.lines if line != BETWEEN] == printed
    assert log.gaps == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=30), TROUBLES)
def test_past_the_bound_every_line_is_there_or_in_a_counted_gap(shipping, troubles):
    with tempfile.TemporaryDirectory() as folder:
        log, spool, printed = MemoryLog(troubles), Spool(folder, 150_000), []
        shipper = Shipper(spool, log)
        for steps in shipping:
            lines = [b"%d %s" % (len(printed) + i, b"x" * (i * 7 % 900)) for i in range(100)]
            printed += lines
            spool.append(b"".join(line + b"\n" for line in lines), 0)
            for _ in range(steps - 3):
                shipper.step()
        ship_all(shipper)
        spool.close()
    assert len(log.lines) == len(printed)
    assert all(line is None or line == printed[number] for number, line in enumerate(log.lines))
    lost = [number for number, line in enumerate(log.lines) if line is None]
    assert sum(size for _, _, size in log.gaps) == sum(len(printed[number]) + 1 for number in lost)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=30), TROUBLES, st.integers(0, 1500))
def test_past_the_limit_of_the_log_every_line_is_there_or_in_a_counted_gap(shipping, troubles, limit):
    with tempfile.TemporaryDirectory() as folder:
        log, spool, printed = MemoryLog(troubles), Spool(folder, 150_000), []
        log.limit = limit
        shipper = Shipper(spool, log)
        for steps in shipping:
            lines = [b"%d %s" % (len(printed) + i, b"x" * (i * 7 % 900)) for i in range(100)]
            printed += lines
            spool.append(b"".join(line + b"\n" for line in lines), 0)
            for _ in range(steps - 3):
                shipper.step()
        shipper.is_last = True
        ship_all(shipper)
        spool.close()
    assert len(log.lines) == len(printed)
    assert all(line is None or line == printed[number] for number, line in enumerate(log.lines))
    assert log.lines[-1] == printed[-1]
